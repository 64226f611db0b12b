// Who wrote each byte: every write of a user or an agent carries a token, and every ref, stash and setting has its last word here.

export type Place = 'checkout' | 'loop'

export interface Token {
  readonly id: string
  readonly owner: 'user' | 'agent'
  readonly path: string
  readonly place: Place
  /** `index`: staged only; the file itself has another version. */
  readonly where: 'tree' | 'index' | 'ignored'
  /** When it was written, in words. */
  readonly moment: string
  /** Of a user's: written beside an agent or a gate, in the loop's own tree. */
  readonly isBeside?: boolean
  /** Of an agent's: which spawn wrote it. */
  readonly spawn?: number
  /** The user has deleted or replaced it themselves. */
  isRetired: boolean
  /** Written beside an agent and destroyed by that very agent in the same attempt: no checkpoint has ever seen it. */
  isTaken: boolean
  /** It is in a commit or stash of the user's own. */
  isCommitted: boolean
}

export interface Spawn {
  readonly index: number
  readonly story: string
  readonly iteration: number
  /** Counts `--fresh` starts; iteration numbers begin anew with each. */
  readonly generation: number
  readonly says: string
  /** Its tokens that were in the loop's tree when it made its promise; absent: it did not get there. */
  left?: readonly string[]
}

export interface Ledger {
  readonly tokens: Token[]
  readonly spawns: Spawn[]
  /** The user's last word on a ref; empty: deleted. */
  readonly refs: Map<string, string>
  /** How many tokens there were when the user last touched a ref. */
  readonly refTimes: Map<string, number>
  /** What an agent took of these before anybody could see them: ralph may have found them all the same. */
  readonly takenRefs: Map<string, string>
  /** Refs that an agent's script has written or deleted, by full name. */
  readonly agentRefs: Set<string>
  /** Hashes of stash entries that the user has made and not dropped. */
  readonly stashes: Set<string>
  /** Paths that an agent's script has named, by place; git's own doings apart. */
  readonly agentPaths: Set<string>
  /** Paths that an agent's script deletes, with what an agent before it wrote into them. */
  readonly agentDeletes: Set<string>
  /** Deeds of the user that move whatever lies in the tree. */
  readonly sweeps: string[]
  /** Path -> permissions, and its line in `git diff --cached --raw`, as the user had them before the loop. */
  readonly modes: Map<string, string>
  readonly staged: Map<string, string>
  /** A file like .git/config with nothing but what the user has put into it. */
  configFile: string
  mint(
    owner: 'user' | 'agent',
    rest: Omit<Token, 'id' | 'owner' | 'isRetired' | 'isTaken' | 'isCommitted'>,
  ): string
  liveOf(place: Place): Token[]
}

export const tokenPattern = /tok-[ua]\d+-\d+x/g

export function openLedger(round: number): Ledger {
  const tokens: Token[] = []
  return {
    tokens,
    spawns: [],
    refs: new Map(),
    refTimes: new Map(),
    takenRefs: new Map(),
    agentRefs: new Set(),
    stashes: new Set(),
    agentPaths: new Set(),
    agentDeletes: new Set(),
    sweeps: [],
    modes: new Map(),
    staged: new Map(),
    configFile: '',
    mint(owner, rest) {
      const id = `tok-${owner === 'user' ? 'u' : 'a'}${round}-${tokens.length}x`
      tokens.push({ id, owner, ...rest, isRetired: false, isTaken: false, isCommitted: false })
      return id
    },
    liveOf: (place) =>
      tokens.filter(
        (token) =>
          token.owner === 'user' && !token.isRetired && token.place === place && token.where === 'tree',
      ),
  }
}
