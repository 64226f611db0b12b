// What of a home the cage knows by name: logins and keys that nobody needs there, the folders of each agent, caches of package managers.
// Long because it is lists: one place to look whether something is seen, and nothing is decided here.

/** Relative to the home, unless the variable says that it is elsewhere. */
export interface HomePlace {
  readonly path: string
  readonly variable?: string
  /** Below the folder that the variable names. */
  readonly below?: string
}

export interface AgentHome {
  /** Written while it works: sessions, logs, a login that is renewed. */
  readonly state: readonly HomePlace[]
  /** In there, but obeyed by later runs outside of the cage: read only. */
  readonly settings: readonly HomePlace[]
  /** Both: it gets a copy, which is thrown away. */
  readonly copied: readonly HomePlace[]
  /** Not to be seen by anybody else. */
  readonly logins: readonly HomePlace[]
  /** Reached in a strict cage without being listed. */
  readonly hosts: readonly string[]
}

const at = (path: string, variable?: string, below = ''): HomePlace =>
  variable === undefined ? { path } : { path, variable, below }
const below = (folder: string, variable: string, names: readonly string[]): HomePlace[] =>
  names.map((name) => at(`${folder}/${name}`, variable, name))

/** Lists of names that hold blanks, but no commas. */
const list = (...lines: readonly string[]): readonly string[] => lines.flatMap((line) => line.split(', '))

const names = (...lines: readonly string[]): ReadonlySet<string> =>
  new Set(lines.flatMap((line) => line.split(' ')))

const claude = (...names: string[]): HomePlace[] => below('.claude', 'CLAUDE_CONFIG_DIR', names)
const codex = (...names: string[]): HomePlace[] => below('.codex', 'CODEX_HOME', names)
const gemini = (...names: string[]): HomePlace[] => names.map((name) => at(`.gemini/${name}`))
const opencode = (...names: string[]): HomePlace[] =>
  names.map((name) => at(`.local/share/opencode/${name}`, 'XDG_DATA_HOME', `opencode/${name}`))

const opencodeSettings = list(
  'opencode.json, opencode.jsonc, config.json, AGENTS.md, plugin, plugins, tool, tools',
  'command, commands, agent, agents, mode, modes, skill, skills',
).map((name) => at(`.config/opencode/${name}`, 'XDG_CONFIG_HOME', `opencode/${name}`))

export const agentHomes: Readonly<Record<string, AgentHome>> = {
  claude: {
    state: [at('.claude', 'CLAUDE_CONFIG_DIR')],
    settings: claude(
      ...list(
        'settings.json, settings.local.json, CLAUDE.md, rules, commands, agents, skills',
        'hooks, plugins, output-styles, workflows, local, chrome',
      ),
    ),
    copied: [at('.claude.json', 'CLAUDE_CONFIG_DIR', '.claude.json')],
    logins: [...claude('.credentials.json'), at('.claude.json', 'CLAUDE_CONFIG_DIR', '.claude.json')],
    hosts: ['api.anthropic.com', '*.anthropic.com', 'platform.claude.com', 'claude.ai'],
  },
  codex: {
    state: [at('.codex', 'CODEX_HOME')],
    settings: codex('config.toml', 'AGENTS.md', 'hooks.json', 'hooks', 'prompts', 'rules', 'skills'),
    copied: [],
    logins: codex('auth.json'),
    hosts: ['api.openai.com', 'auth.openai.com', 'chatgpt.com'],
  },
  gemini: {
    state: [at('.gemini')],
    settings: gemini(
      ...list(
        'settings.json, GEMINI.md, .env, commands, extensions, policies, skills, hooks, trustedFolders.json',
      ),
    ),
    copied: [],
    logins: gemini('oauth_creds.json', 'google_accounts.json', 'mcp-oauth-tokens.json', '.env'),
    hosts: [
      'generativelanguage.googleapis.com',
      'cloudcode-pa.googleapis.com',
      'oauth2.googleapis.com',
      'accounts.google.com',
    ],
  },
  opencode: {
    state: [
      at('.local/share/opencode', 'XDG_DATA_HOME', 'opencode'),
      at('.local/state/opencode', 'XDG_STATE_HOME', 'opencode'),
      // It does not start where it cannot write a .gitignore here.
      at('.config/opencode', 'XDG_CONFIG_HOME', 'opencode'),
    ],
    settings: opencodeSettings,
    copied: [],
    logins: opencode('auth.json', 'mcp-auth.json', 'account.json'),
    hosts: ['opencode.ai', 'models.dev', 'api.anthropic.com', 'api.openai.com'],
  },
}

/** Made where one of the programs is there, which could not make it itself. */
const usedBy = (programs: string, ...places: readonly HomePlace[]): Cache[] =>
  places.map((place) => ({ ...place, by: programs.split(' ') }))

export interface Cache extends HomePlace {
  readonly by?: readonly string[]
}

/**
 * Of package managers and compilers: what is written there is seen by later builds outside of the cage. Folders, not all of the tool's own one:
 * beside them lie settings and logins, and scripts that it would run.
 */
export const caches: readonly Cache[] = [
  at('.cache', 'XDG_CACHE_HOME'),
  at('.npm', 'npm_config_cache'),
  // All of these are in .cache, unless a variable says otherwise.
  ...list('GOCACHE, PIP_CACHE_DIR, UV_CACHE_DIR, YARN_CACHE_FOLDER').map((name) => at('.cache', name)),
  ...usedBy('yarn', at('.yarn/berry', 'YARN_GLOBAL_FOLDER')),
  at('.pnpm-store'),
  at('.local/state/pnpm'),
  ...usedBy('pnpm', at('.local/share/pnpm/store', 'npm_config_store_dir')),
  ...usedBy('bun', at('.bun/install/cache', 'BUN_INSTALL_CACHE_DIR')),
  ...usedBy('cargo', ...below('.cargo', 'CARGO_HOME', ['registry', 'git'])),
  ...usedBy('go', at('go/pkg', 'GOPATH', 'pkg'), at('go/pkg', 'GOMODCACHE')),
  ...usedBy(
    'gradle gradlew',
    ...below(
      '.gradle',
      'GRADLE_USER_HOME',
      'caches wrapper daemon native jdks notifications workers .tmp'.split(' '),
    ),
  ),
  ...usedBy('mvn mvnw', at('.m2/repository'), at('.m2/wrapper')),
  ...usedBy('dotnet', at('.nuget/packages', 'NUGET_PACKAGES')),
  at('.composer/cache'),
  at('Library/Caches'),
]

/**
 * Folders of a home in which each entry is hidden unless it is named here: new programs keep their logins there every day, and nobody can list them.
 * Named are shells, toolchains, and what they need to build; secrets in there are hidden all the same.
 */
export const closed: readonly { readonly folder: HomePlace; readonly but: ReadonlySet<string> }[] = [
  {
    // Of the home itself: what begins with a dot.
    folder: at(''),
    but: names(
      '.config .local .cache .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .zshrc .zshenv .zprofile .zlogin .zlogout',
      '.zsh .oh-my-zsh .zinit .inputrc .dircolors .terminfo .editorconfig .gitconfig .gitignore .gitignore_global .gitattributes .gitmessage .git-templates .fonts',
      '.npm .npmrc .nvm .nvmrc .n .nodenv .node-gyp .node-version .node_modules .volta .fnm .bun .deno .yarn .yarnrc .yarnrc.yml .pnpm-store .pnpm-state',
      '.cargo .rustup .rustfmt.toml .pyenv .python-version .virtualenvs .venv .venvs .conda .mamba .micromamba .rye .uv .ipython .matplotlib .nltk_data .keras',
      '.rbenv .ruby-version .rvm .gem .gemrc .bundle .irbrc .rspec .asdf .asdfrc .tool-versions .mise .proto .sdkman .jenv .jabba .java .gradle .m2 .ivy2 .sbt .coursier',
      '.konan .android .nuget .dotnet .templateengine .omnisharp .composer .phpenv .opam .ghcup .ghc .stack .cabal .hex .mix .elan .julia .juliaup .goenv .gvm .go',
      '.nix-profile .nix-defexpr .nix-channels .linuxbrew .swiftpm .swiftly .pub-cache .dart .dart-tool .flutter .zvm .zig .nimble .choosenim .luarocks .cpan .cpanm .perl5',
      '.R .Rprofile .bazel .bazelrc .ccache .ccls-cache .cmake .conan .conan2 .vcpkg .emscripten .emscripten_cache .wasmtime .wasmer .foundry .svm .solc-select .hardhat',
    ),
  },
  {
    folder: at('.config', 'XDG_CONFIG_HOME'),
    but: names(
      'git npm yarn pnpm go gopls mise rtx asdf fish ripgrep bat direnv fontconfig uv ruff pypoetry matplotlib black flake8 pylintrc yapf clangd ccache nix nixpkgs',
      'nvim-treesitter cmake mypy pycodestyle shellcheckrc starship.toml user-dirs.dirs locale.conf',
    ),
  },
  { folder: at('.local'), but: names('bin lib lib64 libexec include opt etc share state pipx go man src') },
  {
    folder: at('.local/share', 'XDG_DATA_HOME'),
    but: names(
      'pnpm fnm mise rtx asdf uv pipx virtualenv virtualenvs man bash-completion zsh zinit fonts mime locale icons claude cargo rustup npm node nvm gem gems go coursier',
      'hatch pypoetry rye swiftly nix racket zig cabal ghcup stack bun deno corepack nodeenv pyenv rbenv umake composer flutter typst bob nvim-treesitter tree-sitter',
    ),
  },
  {
    folder: at('.local/state', 'XDG_STATE_HOME'),
    but: names('nix mise fnm_multishells pnpm yarn cabal ghcup'),
  },
  {
    folder: at('.cache', 'XDG_CACHE_HOME'),
    but: names(
      'pip pip-tools uv pypoetry pre-commit node node-gyp npm yarn pnpm bun deno turbo nx Cypress ms-playwright ms-playwright-go puppeteer prisma prisma-nodejs electron',
      'electron-builder typescript go-build golangci-lint gopls goimports staticcheck bazel bazelisk _bazel_root ccache sccache mold zig ghc cabal stack hie-bios',
      'coursier gradle maven sbt nix composer mypy ruff black pytest matplotlib torch tensorflow keras huggingface fontconfig mesa_shader_cache mesa_shader_cache_db mise rtx rattler conda hatch',
      'virtualenv pipx cpython rubocop_cache solargraph bundler gem julia flutter dart clangd nvidia vite esbuild jest corepack hardhat-nodejs claude claude-cli-nodejs',
      'opencode vcpkg conan cmake emscripten wasmtime wasmer svm nvm fnm binaryen lima buf protobuf tree-sitter swiftpm helm terraform R cargo rust-analyzer',
    ),
  },
]

/** Keys, logins, sessions and histories of other programs. */
export const secrets: readonly HomePlace[] = list(
  '.ssh, .putty, .gnupg, .password-store, .age, .config/age, .config/sops',
  '.local/share/keyrings, .local/share/kwalletd, .kde/share/apps/kwallet, .config/kwalletrc',
  '.1password, .config/1Password, .config/op, .config/Bitwarden, .config/Bitwarden CLI',
  '.config/keepassxc, .cache/keepassxc, .lastpass, .config/KeePass',
  '.netrc, _netrc, .git-credentials, .config/git/credentials, .config/gh, .config/hub',
  '.config/glab-cli, .config/tea, .config/github-copilot, .config/jj/credentials',
  '.azure, .config/gcloud, .boto, .oci, .config/doctl, .config/hcloud, .linode-cli',
  '.aliyun, .ibmcloud, .bluemix, .config/linode-cli, .config/scw, .config/exoscale',
  '.kube, .docker, .config/containers/auth.json, .config/helm, .minikube, .terraform.d/credentials.tfrc.json',
  '.terraformrc, .pulumi, .vault-token, .config/heroku, .fly, .config/netlify, .netlify',
  '.config/vercel, .local/share/com.vercel.cli, .config/.wrangler, .wrangler, .config/stripe',
  '.config/firebase, .config/configstore, .railway, .supabase, .config/rclone, .s3cfg',
  '.cache/huggingface/token, .cache/huggingface/stored_tokens, .config/pypoetry/auth.toml, .android/adbkey, .config/fish/fish_variables, .cargo/credentials, .cargo/credentials.toml',
  '.pypirc, .gem/credentials, .m2/settings.xml, .m2/settings-security.xml, .jfrog',
  '.gradle/gradle.properties, .nuget/NuGet/NuGet.Config, .composer/auth.json, .bundle/config',
  '.gradle/enterprise, .gradle/develocity, .config/pnpm/auth.ini, .local/share/uv/credentials, .local/share/gem/credentials',
  '.sbt/.credentials, .ivy2/.credentials, .hex/hex.config, .pub-cache/credentials.json, .stack/upload/credentials.json',
  '.conan2/credentials.json, .luarocks/upload_config.lua, .julia/servers, .foundry/keystores',
  '.pgpass, .my.cnf, .mylogin.cnf, .snowsql, .databrickscfg, .databricks, .dbt',
  '.config/sourcegraph, .config/linear, .slack, .config/Slack, .config/discord',
  '.config/Signal, .config/Element, .thunderbird, .config/evolution, .local/share/evolution',
  '.mozilla, .config/google-chrome, .config/google-chrome-beta, .config/chromium',
  '.config/BraveSoftware, .config/microsoft-edge, .config/vivaldi, .config/opera, .librewolf',
  '.cache/mozilla, .cache/google-chrome, .cache/chromium, .cache/BraveSoftware, .cache/thunderbird',
  'snap/firefox, snap/chromium, .var/app, .config/Code/User/globalStorage, .config/Cursor',
  '.bitcoin, .ethereum, .electrum, .config/solana, .local/share/TelegramDesktop',
  '.Xauthority, .ICEauthority, .rhosts, .esmtprc, .msmtprc, .config/msmtp, .mutt',
  '.bash_history, .zsh_history, .histfile, .local/share/fish/fish_history, .psql_history',
  '.mysql_history, .python_history, .node_repl_history, .rediscli_history, .lesshst',
  'Library/Keychains, Library/Cookies, Library/Safari, Library/Messages, Library/Mail',
  'Library/Application Support/Google/Chrome, Library/Application Support/Firefox',
  'Library/Application Support/BraveSoftware, Library/Application Support/Microsoft Edge',
  'Library/Application Support/com.apple.TCC, Library/Group Containers, Library/Containers',
).map((path) => at(path))

/** Those whose place a variable can change. */
export const movedSecrets: readonly HomePlace[] = [
  at('.aws', 'AWS_CONFIG_DIR'),
  at('.aws/credentials', 'AWS_SHARED_CREDENTIALS_FILE'),
  at('.aws/config', 'AWS_CONFIG_FILE'),
  at('.gnupg', 'GNUPGHOME'),
  at('.kube/config', 'KUBECONFIG'),
  at('.docker', 'DOCKER_CONFIG'),
  at('.config/gcloud', 'CLOUDSDK_CONFIG'),
  at('.config/gh', 'GH_CONFIG_DIR'),
  at('.cargo/credentials', 'CARGO_HOME', 'credentials'),
  at('.cargo/credentials.toml', 'CARGO_HOME', 'credentials.toml'),
  at('.config/gcloud/application_default_credentials.json', 'GOOGLE_APPLICATION_CREDENTIALS'),
  at('.Xauthority', 'XAUTHORITY'),
  at('.netrc', 'NETRC'),
  // Values of agent_env may be secrets.
  at('.config/ralph', 'XDG_CONFIG_HOME', 'ralph'),
  at('.pgpass', 'PGPASSFILE'),
]

/** Seen without the lines that hold a login. */
export const registrySettings: readonly HomePlace[] = [
  at('.npmrc', 'NPM_CONFIG_USERCONFIG'),
  at('.yarnrc.yml'),
  at('.yarnrc'),
  at('.config/pnpm/rc', 'XDG_CONFIG_HOME', 'pnpm/rc'),
]

export function withoutLogins(text: string): string {
  const isLogin = /_auth|_password|authtoken|authident|username|email|certfile|keyfile|^\s*(?:key|cert)\s*=/i
  return text
    .split('\n')
    .filter((line) => !isLogin.test(line))
    .join('\n')
}

/** One that git has read, and where. */
export interface GitSettingFound {
  readonly file: string
  readonly key: string
  /** In bytes (latin1). */
  readonly value: string
}

/** As one file, in bytes (latin1): what was included is in it, but for what may be a login and lies where it cannot be seen. */
export function gitSettingsText(
  settings: readonly GitSettingFound[],
  isSeen: (file: string) => boolean,
): string {
  const isLogin = /^credential\.|extraheader|token|passw|passphrase|smtppass|secret|cookie|:\/\/[^/\s]*@/i
  const quoted = (text: string): string =>
    `"${text.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`)}"`
  return settings
    .filter(({ key }) => !/^include(?:if\..*)?\.path$/s.test(key))
    .filter(({ file, key, value }) => isSeen(file) || !(isLogin.test(key) || isLogin.test(value)))
    .map(({ key, value }) => {
      const [, section = '', part, name = ''] = /^([^.]*)\.(?:(.*)\.)?([^.]*)$/s.exec(key) ?? []
      return `[${section}${part === undefined ? '' : ` ${quoted(part)}`}]\n\t${name} = ${quoted(value)}\n`
    })
    .join('')
}

/** Only root can read them. */
export const systemSecrets: readonly string[] = list(
  '/etc/shadow, /etc/shadow-, /etc/gshadow, /etc/gshadow-, /etc/sudoers, /etc/sudoers.d',
  '/etc/ssl/private, /etc/krb5.keytab, /etc/NetworkManager/system-connections, /etc/wireguard',
  '/etc/kubernetes, /etc/rancher, /var/lib/docker, /var/lib/containerd, /var/lib/kubelet',
  '/etc/ssh/ssh_host_rsa_key, /etc/ssh/ssh_host_ecdsa_key, /etc/ssh/ssh_host_ed25519_key',
  // Nothing to read; some of it sets what the kernel does.
  '/proc/fs',
)

/** Sockets of other programs, wherever their variables say that they are. */
export function namedSockets(env: Readonly<Record<string, string | undefined>>): string[] {
  const first = (env['GPG_AGENT_INFO'] ?? '').split(':')[0] ?? ''
  const addresses = ['DBUS_SESSION_BUS_ADDRESS', 'DOCKER_HOST', 'CONTAINER_HOST', 'BUILDKIT_HOST'].flatMap(
    (name) => [...(env[name] ?? '').matchAll(/unix:(?:path=|\/\/)([^,;]+)/g)].map(([, path = '']) => path),
  )
  const plain = [
    'SSH_AUTH_SOCK',
    'WAYLAND_DISPLAY',
    'XDG_RUNTIME_DIR',
    'GNOME_KEYRING_CONTROL',
    'VSCODE_IPC_HOOK_CLI',
    'VSCODE_GIT_IPC_HANDLE',
  ]
  return [first, ...addresses, ...plain.map((name) => env[name] ?? '')].filter((path) => path.startsWith('/'))
}

/** Sockets and logins of other programs, by name; what `--agent-env` names stays. */
export function isOthersVariable(
  name: string,
  agent: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  if (cloud.test(name)) {
    const isPaid = agent === 'claude' && (env['CLAUDE_CODE_USE_BEDROCK'] || env['CLAUDE_CODE_USE_VERTEX'])
    return !isPaid
  }
  return others.test(name)
}

const cloud =
  /^(?:AWS_(?:ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|BEARER_TOKEN_\w+)|GOOGLE_APPLICATION_CREDENTIALS|AWS_CONTAINER_\w+)$/

const others = new RegExp(
  `^(?:${[
    'SSH_AUTH_SOCK|SSH_AGENT_PID|SSH_ASKPASS|SUDO_ASKPASS|GIT_ASKPASS|GPG_AGENT_INFO|GNOME_KEYRING_CONTROL',
    'DBUS_\\w+|XDG_RUNTIME_DIR|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|SESSION_MANAGER|TMUX|STY|VSCODE_\\w+',
    'GH_TOKEN|GITHUB_TOKEN|GH_ENTERPRISE_TOKEN|GITLAB_TOKEN|CI_JOB_TOKEN|BITBUCKET_TOKEN|HUB_TOKEN|ACTIONS_\\w*TOKEN',
    'NPM_TOKEN|NODE_AUTH_TOKEN|YARN_NPM_AUTH_TOKEN|TWINE_PASSWORD|PYPI_TOKEN|CARGO_REGISTRY_TOKEN|GEM_HOST_API_KEY',
    'AZURE_CLIENT_SECRET|ARM_CLIENT_SECRET|DIGITALOCEAN_\\w*TOKEN|HCLOUD_TOKEN|CLOUDFLARE_API_\\w+|FLY_API_TOKEN',
    'HEROKU_API_KEY|VERCEL_TOKEN|NETLIFY_AUTH_TOKEN|VAULT_TOKEN|OP_SERVICE_ACCOUNT_TOKEN|OP_SESSION_\\w+|BW_SESSION',
    'DOCKER_HOST|DOCKER_AUTH_CONFIG|KUBECONFIG|PGPASSWORD|MYSQL_PWD|SLACK_\\w*TOKEN|STRIPE_\\w*KEY|SENTRY_AUTH_TOKEN',
  ].join('|')})$`,
)
