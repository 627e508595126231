#compdef gpr
# Completes command lines of gpr in zsh. What may follow, gpr itself says.

local line word
local -a values shown
for line in "${(@f)$($words[1] complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
        '') ;;
        :files)
            compset -P '*='
            _files ;;
        ':program '*)
            shift $((${line#:program } + 1)) words
            CURRENT=$((CURRENT - ${line#:program } - 1))
            _normal
            return ;;
        *)
            word=${line%%$'\t'*}
            values+=("$word")
            shown+=("$word  ${line#*$'\t'}") ;;
    esac
done
# A space follows a word that is complete.
local -a open whole open_shown whole_shown
local i
for ((i = 1; i <= $#values; i++)); do
    if [[ $values[i] == *[:=] ]]; then
        open+=("$values[i]") open_shown+=("$shown[i]")
    else
        whole+=("$values[i]") whole_shown+=("$shown[i]")
    fi
done
(($#open)) && compadd -S '' -ld open_shown -a open
(($#whole)) && compadd -ld whole_shown -a whole
