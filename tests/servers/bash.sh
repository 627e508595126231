# needs: bash tmux
terminal
echo "PS1='inner> '" >rc
keys 'under bash --rcfile rc -i' Enter
prompts 'inner>'
keys 'echo hello $((6 * 7)); echo $-' Enter
sees '^hello 42$'
sees '^h?i'
# A job that ends while the shell waits for keys.
keys 'clear; sleep 0.5 &' Enter
sees '^\[1\] '
sleep 1
keys 'echo still here' Enter
sees '^still here$'
sees '^\[1\]\+  Done'
keys 'clear; sleep 100' Enter
sleep 0.5
keys C-z
sees '^\[1\]\+  Stopped'
keys 'clear; jobs -r; bg; jobs -r; fg' Enter
sees '^\[1\]\+  Running'
sleep 0.5
keys C-c
sleep 0.5
keys 'echo status $?' Enter
sees '^status 130$'
keys 'clear; cat | tr a-z A-Z' Enter
sleep 0.5
keys abc Enter C-d
sees '^ABC$'
keys 'trap "echo resized" WINCH; clear' Enter
tmux resize-window -x 100 -y 30
keys Enter 'stty size; echo $COLUMNS' Enter
sees '^30 100$'
sees '^100$'
keys 'clear; kill -STOP $$' Enter
prompts 'outer>'
keys 'clear; jobs; fg' Enter
sees '^\[1\]\+  Stopped'
sleep 0.5
keys 'clear' Enter
prompts 'inner>'
keys 'exit 7' Enter
prompts 'outer>'
keys 'echo left $?' Enter
sees '^left 7$'
