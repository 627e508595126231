# Completes command lines of gpr in bash. What may follow, gpr itself says.

_gpr() {
    local line=${COMP_LINE:0:COMP_POINT} cur=${COMP_WORDS[COMP_CWORD]} typed lead word about
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    typed=${words[-1]}
    # bash divides a word at ':' and '=', and wants what follows the last of them.
    lead=
    [[ $COMP_WORDBREAKS == *[:=]* && $typed == *[:=]* ]] && lead=${typed%"${typed##*[:=]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r word about; do
        case $word in
            :files) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${typed##*=}")
                    compopt -o filenames ;;
            ":program "*) _gpr_program "${word#:program }" "$typed"; return ;;
            *) COMPREPLY+=("${word#"$lead"}")
               [[ $word == *[:=] ]] && compopt -o nospace ;;
        esac
    done < <("${words[0]}" complete "${words[@]:1}" 2>/dev/null)
}

# What follows a program is completed as if it were typed alone, if bash-completion is there.
_gpr_program() {
    if declare -F _command_offset >/dev/null; then
        _command_offset $(($1 + 1))
    elif [[ ${words[$1 + 1]} == "$2" && $((${#words[@]} - 2)) == "$1" ]]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$2"; compgen -f -- "$2")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
        compopt -o filenames
    fi
}

complete -F _gpr gpr
