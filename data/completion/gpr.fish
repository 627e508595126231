# Completes command lines of gpr in fish. What may follow, gpr itself says.

function __gpr_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            set -l option (string match -r -- '^--[^=]*=' (commandline -ct))
            for file in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' (commandline -ct)))
                echo "$option$file"
            end
        else if string match -q ":program *" -- $line
            set -l first (math (string replace ":program " "" -- $line) + 2)
            complete -C (string join " " -- (string escape -- $words[$first..-2]) (commandline -ct))
        else
            echo $line
        end
    end
end

complete -c gpr -f -a "(__gpr_complete)"
