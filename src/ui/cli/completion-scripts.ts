// The shells' side of completion: each hands the words to `ralph complete` and never evaluates one of them.

export const completionScripts = {
  bash: `# ralph completion for bash: source <(ralph completion bash)
_ralph() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(command "$1" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ralph ralph ralphtool
`,
  zsh: `#compdef ralph ralphtool
# ralph completion for zsh: source <(ralph completion zsh)
_ralph() {
  local -a offers
  local line tab=$'\\t'
  for line in "\${(@f)$(command "$words[1]" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && offers+=("\${\${line%%\${tab}*}//:/\\\\:}:\${line#*\${tab}}")
  done
  if (( $#offers )); then _describe ralph offers; else _files; fi
}
if [[ "$funcstack[1]" == _ralph ]]; then _ralph "$@"; else compdef _ralph ralph ralphtool; fi
`,
  fish: `# ralph completion for fish: ralph completion fish > ~/.config/fish/completions/ralph.fish
function __ralph_complete
    set -l typed (commandline -ct)
    set -l words (commandline -opc)
    command $words[1] complete -- $words[2..-1] "$typed" 2>/dev/null
end
complete -c ralph -a '(__ralph_complete)'
complete -c ralphtool -a '(__ralph_complete)'
`,
} as const
