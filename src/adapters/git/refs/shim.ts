// What each hook of a watched git runs: it tells ralph which refs are written, or refuses that, and then runs the repository's own hook.
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { quoted } from '../../../core/shell-word.ts'

export interface UserSettings {
  /** Where the repository's own hooks are. */
  readonly hooks: string
  /** Settings that the user's environment brings. */
  readonly parameters: string
  /** The user's own trace stays the user's. */
  readonly hasTrace: boolean
}

/**
 * Never fails and never waits: at worst something is not seen. Without a fork where nothing is to be told: git calls it
 * twice for each ref that it packs. POSIX but for `-ef` and `-nt`, which every sh has.
 */
export function shimScript(
  at: UserSettings & { folder: string; gitDir: string; common: string; isClosed?: boolean },
): string {
  const common = quoted(realpathSync(at.common))
  const parameters = quoted(at.parameters)
  return `# Made by ralph for one attempt or merge, and removed after it: tells ralph which refs this git writes, or refuses that, then runs the repository's own hook.
name=\${0##*/}
dir=\${GIT_DIR:-.git}
[ -f "$dir" ] && read -r _ dir <"$dir"
tree=
if [ "$dir" -ef ${quoted(realpathSync(at.gitDir))} ]; then
  tree=.
elif [ "$dir" -ef ${common} ]; then
  tree=@
elif [ -f "$dir/commondir" ]; then
  read -r up <"$dir/commondir"
  case $up in /*) ;; *) up=$dir/$up ;; esac
  [ "$up" -ef ${common} ] && tree=\${dir##*/}
fi

# Asked of git only where it may have another answer than before the attempt.
hooks=${quoted(at.hooks)}
asked=${parameters}$GIT_CONFIG_COUNT
[ -n "$tree" ] || asked=elsewhere
[ ${common}/config -nt ${quoted(join(at.folder, 'shim.sh'))} ] && asked=changed
if [ -n "$asked" ]; then
  quietly() { GIT_TRACE2_EVENT=0 GIT_CONFIG_PARAMETERS=${parameters} git "$@"; }
  hooks=$(quietly config --type=path --get core.hooksPath) || hooks=$(quietly rev-parse --git-common-dir)/hooks
fi
own=$hooks/$name
{ [ -n "$hooks" ] && [ -f "$own" ] && [ -x "$own" ]; } || own=

${at.isClosed === true ? refusals(at.folder) : reports(at.folder)}
[ -n "$own" ] || exit 0
[ -n "\${lines-}" ] || exec "$own" "$@"
printf '%s\\n' "$lines" | "$own" "$@"
exit
`
}

function reports(folder: string): string {
  return `ledger=${quoted(join(folder, 'ledger'))}
told() {
  unknown=
  while read -r old new ref; do
    if [ "$1" = committed ]; then
      echo "wrote $tree $old $new $ref"
      continue
    fi
    # Before git shows it: the merge queue may look at any moment.
    case $ref in refs/ralph-landed/*) echo "will $tree $old $new $ref" ;; esac
    case $old:$ref in
    *[!0]*:* | *:refs/remotes/*) ;;
    *:refs/*) unknown="$unknown$ref $ref
" ;;
    esac
  done
  # git gives no old value where it was asked to check none; while the ref is locked it can still be seen.
  [ -z "$unknown" ] || printf %s "$unknown" |
    GIT_TRACE2_EVENT=0 git cat-file --batch-check="found $tree %(objectname) %(rest)"
}
case $tree:$name:$1 in
:*) ;;
*:post-checkout:*)
  read -r head <"$dir/HEAD"
  [ -h "$dir/HEAD" ] && head="ref: $(readlink "$dir/HEAD")"
  echo "switched $tree $1 $2 $3 $head" ;;
*:reference-transaction:prepared | *:reference-transaction:committed)
  [ -n "$own" ] || { told "$1"; exit 0; }
  lines=$(cat)
  told "$1" <<END
$lines
END
  ;;
esac 2>/dev/null >>"$ledger"
`
}

/** One that is written as it is stays as it is: `git reset` does that. */
function refusals(folder: string): string {
  return `case $tree:$name:$1 in
:*) ;;
*:reference-transaction:prepared)
  lines=$(cat)
  while read -r old new ref; do
    case $ref in
    refs/heads/ralph/* | refs/ralph* | refs/stash) ;;
    refs/*) grep -qxF -e "$ref" ${quoted(join(folder, 'there'))} || continue ;;
    *) continue ;;
    esac
    [ "$(git rev-parse --quiet --verify "$ref")" = "$new" ] && continue
    echo "ralph: it may not write \${ref#refs/heads/}: refs stay as they are while a merge is tested" >&2
    exit 1
  done <<END
$lines
END
  ;;
esac
`
}
