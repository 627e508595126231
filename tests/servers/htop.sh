# needs: htop tmux
terminal
keys 'under htop -d 5' Enter
sees '^F1Help .*F10Quit'
tmux resize-window -x 100 -y 30
sleep 1
[[ $(tmux capture-pane -p | sed -n '30{/^F1Help/p}') ]] && echo "fills the window"
keys C-z
prompts 'outer>'
keys 'clear; fg' Enter
sees '^F1Help .*F10Quit'
keys q
prompts 'outer>'
keys 'clear; echo status $?' Enter
sees '^status 0$'
