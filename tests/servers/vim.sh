# needs: vim tmux
terminal
keys 'under vim -u NONE -N text' Enter
sees '^~'
keys 'ihello' Enter 'world' Escape ':s/world/there/' Enter yyp
sees '^there$'
tmux resize-window -x 60 -y 15
sleep 0.5
keys ':echo "size" &columns &lines' Enter
sees '^size 60 15'
keys C-z
prompts 'outer>'
keys 'clear; echo in the shell' Enter
sees '^in the shell$'
keys fg Enter
sees '^there$'
keys Goend Escape ':!echo from a child' Enter
sees '^from a child'
keys Enter ':wq' Enter
prompts 'outer>'
keys 'clear; echo status $?' Enter
sees '^status 0$'
cat text
