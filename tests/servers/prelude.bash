# What every script here may use. The current directory is fresh and its own.

# `under PROGRAM...` runs it as this mode does; the words of UNDER and ATTACHER are on lines of their
# own. An attacher is not the program's child.
mapfile -t words < <(printf '%s' "$UNDER")
mapfile -t attacher < <(printf '%s' "$ATTACHER")
{
    echo '#!/bin/bash'
    ((${#attacher[@]} == 0)) || printf '(setsid %s $$ %s &)\n' "${attacher[*]:0:2}" \
        "${attacher[*]:2} </dev/null >>'$TMPDIR/attacher.log' 2>&1"
    printf 'exec %s "$@"\n' "${words[*]@Q}"
} >under && chmod +x under
PATH="$PWD:$PATH"
# Attachers end a moment after their programs.
settle() { while pgrep -f "servers/attacher.py" >/dev/null; do sleep 0.1; done; }

# The speed of something, in any unit: more is better.
speed() { echo "$1 $2" >>"$RATES"; }
timed() {
    local name=$1 from=$EPOCHREALTIME status=0
    shift
    "$@" || status=$?
    speed "$name" "$(bc <<<"scale=6; 1 / ($EPOCHREALTIME - $from)")"
    return $status
}

await() {
    for _ in {1..200}; do
        "$@" &>/dev/null && return
        sleep 0.1
    done
    echo "in vain: $*"
    exit 1
}

# -- a terminal

terminal() {
    export TMUX_TMPDIR=$TMPDIR
    trap 'tmux kill-server' EXIT
    tmux -f /dev/null new-session -d -x 80 -y 24 "PS1='outer> ' exec bash --norc -i"
    prompts 'outer>'
}
keys() { tmux send-keys "$@"; }
sees() {  # a line that matches
    local screen
    for _ in {1..100}; do
        screen=$(tmux capture-pane -p)
        grep -qE -- "$1" <<<"$screen" && echo "saw $1" && return
        sleep 0.1
    done
    printf 'never seen: %s\n%s\n' "$1" "$screen"
    exit 1
}
prompts() {  # the last line; before that, keys may be for another program, or be flushed
    local screen
    for _ in {1..100}; do
        screen=$(tmux capture-pane -p | grep -v '^$' | tail -1)
        [[ "$screen" == "$1" ]] && echo "prompt $1" && return
        sleep 0.1
    done
    printf 'no prompt %s\n%s\n' "$1" "$(tmux capture-pane -p)"
    exit 1
}
