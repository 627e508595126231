# needs: htop tmux
terminal
keys 'under htop -d 5' Enter
sees '^F1Help .*F10Quit'
tmux resize-window -x 100 -y 30
until [[ $(tmux capture-pane -p | sed -n '30{/^F1Help/p}') ]]; do sleep 0.2; done
echo "fills the window"
keys C-z
prompts 'outer>'
keys 'clear; fg' Enter
sees '^F1Help .*F10Quit'
keys q
prompts 'outer>'
keys 'clear; echo status $?' Enter
sees '^status 0$'
