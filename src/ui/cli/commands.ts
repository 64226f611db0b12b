// Every command of the program as one row: its words, what it asks of the App, and who prints the answer. Loads commander and nothing else.
// Longer than most files: it is one table.
import { Argument, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type { Command } from '@commander-js/extra-typings'
import { optionGroups } from '../../config/option.ts'
import { RalphError } from '../../core/error.ts'
import type { SettingEntry } from '../../config/load.ts'
import type { LoggedAttempt, LogRequest, Said } from '../app.ts'
import { acceptConfig, addLoopOptions, aloneFlag, asLoop, attendedFlag } from './loop-options.ts'
import { act, report, row } from './row.ts'
import type { Row } from './row.ts'

/** As `chooseRun` does it. */
const leftOut = 'default: the running one, else the one of this work tree, else the latest'

const optionalChange =
  (help = leftOut) =>
  (command: Command) =>
    command.argument('[change]', help)

const attemptNumber = (command: Command) =>
  command.argument('<n>', "the attempt's number", iterationNumber).argument('[change]', leftOut)

const collected = (value: string, earlier: readonly string[] = []): readonly string[] => [...earlier, value]

const firstGroup = `${optionGroups[0]}:`

/** Options of a loop that the merge queue decides itself. */
const notOfResume = ['fresh', 'dry_run'] as const
const notOfUp = ['worktree', 'on_complete', 'from', 'fresh', 'story'] as const
const notOfLand = [...notOfUp, 'dry_run'] as const

const loopUsage = '[change] [options] [-- <arguments for the agent>]'
const exitCodes = `Exit codes:
  0 done            3 retries or iterations used up   6 budget, limit or login
  1 ralph failed    4 no progress                     7 another loop is running
  2 wrong usage     5 needs you                       129, 130, 143 stopped`

/** Help in the order in which one needs the commands. */
export const groups: readonly (readonly [heading: string, rows: readonly Row[]])[] = [
  [
    'Run a loop:',
    [
      row({
        name: 'loop',
        alias: 'run',
        what: 'run the agent over a change, story by story',
        note: exitCodes,
        example: 'ralph loop add-login --agent claude --verify "npm test" --max-retries 2',
        takes: (command) => {
          const bare = command
            .argument(
              '[change]',
              'its folder under openspec/changes (default: the only open one; on a terminal you are asked)',
            )
            .usage(loopUsage)
          const flags = addLoopOptions(bare)
          const takes = bare
            .addOption(new Option('--prompts', 'with --dry-run: every prompt too').helpGroup(firstGroup))
            .addOption(new Option(...acceptConfig).helpGroup(firstGroup))
            .addOption(new Option(attendedFlag).hideHelp())
            .addOption(new Option(aloneFlag).hideHelp())
          return Object.assign(takes, { flags })
        },
        run: async (context, { args: [change], options, command }) => {
          const { startLoop } = await import('./loop-run.ts')
          const {
            acceptConfig: acceptsConfig = false,
            prompts = false,
            attended: isAttended,
            alone: isAlone,
          } = options
          await startLoop(context, change, command.flags(), { acceptsConfig, prompts, isAttended, isAlone })
        },
      }),
      row({
        name: 'resume',
        what: 'continue after a stop, a crash, a stall or a failed story',
        note: `${asLoop(notOfResume)}\nWithout one the run keeps the settings of its start.\n\n${exitCodes}`,
        example: 'ralph resume add-login --feedback "the login page is in src/web"',
        takes: (command) => {
          const bare = command
            .argument('[change]', 'default: the only one that can be resumed')
            .usage(loopUsage)
          const flags = addLoopOptions(bare, { except: notOfResume, isShort: true })
          const takes = bare
            .addOption(new Option('--feedback <text>', 'your hint for the next prompt'))
            .addOption(new Option(...acceptConfig))
            .addOption(new Option(attendedFlag).hideHelp())
            .addOption(new Option(aloneFlag).hideHelp())
          return Object.assign(takes, { flags })
        },
        run: async (context, { args: [change], options, command }) => {
          const { resumeLoop } = await import('./loop-run.ts')
          const {
            feedback,
            acceptConfig: acceptsConfig = false,
            attended: isAttended,
            alone: isAlone,
          } = options
          await resumeLoop(context, change, command.flags(), { feedback, acceptsConfig, isAttended, isAlone })
        },
      }),
      act({
        name: 'stop',
        what: 'stop the running loop and wait until it has stopped',
        example: 'ralph stop add-login',
        takes: (command) =>
          command
            .argument('[change]', 'default: the only one that is running')
            .option('--force', 'kill it at once')
            .option('--all', 'every loop of this repository, and ralph up'),
        refuse: ([change], { all }) =>
          all && change !== undefined
            ? wrong('--all means every change', `leave ${change} out, or leave --all out`)
            : undefined,
        ask: ({ control }, [change], { force = false, all = false }) =>
          all ? control.stopAll(force) : control.stop({ change, force }),
      }),
      act({
        name: 'pause',
        what: 'pause the running loop after this attempt; ralph resume continues it',
        example: 'ralph pause add-login',
        takes: (command) =>
          command.argument('[change]', 'default: the only one that is running').option('--off', 'continue'),
        ask: ({ control }, [change], { off: isOff = false }) => control.pause({ change, isOff }),
      }),
      row({
        name: 'attach',
        what: 'the full screen of a loop that runs elsewhere, or of one that has ended',
        example: 'ralph attach add-login',
        takes: optionalChange(),
        run: async (context, { args: [change] }) => (await import('./tui.ts')).attach(context, change),
      }),
      act({
        name: 'done',
        what: 'mark a manual loop as done',
        example: 'ralph done add-login',
        takes: optionalChange('default: the only one that waits for it'),
        ask: ({ control }, [change]) => control.done(change),
      }),
      act({
        name: 'finish',
        what: 'apply the result: --cleanup, --squash or --keep',
        example: 'ralph finish add-login --cleanup',
        takes: (command) =>
          command
            .argument('[change]', 'default: the only one that is unfinished')
            .addOption(
              new Option(
                '--cleanup',
                'go back to your branch, with the work as uncommitted changes',
              ).conflicts(['keep', 'squash']),
            )
            .addOption(
              new Option('--squash', 'go back to your branch, with the work as one commit').conflicts([
                'keep',
                'cleanup',
              ]),
            )
            .option('-m, --message <text>', 'with --squash: the commit message')
            .addOption(
              new Option('--keep', "stay on ralph's branch with all its commits").conflicts([
                'cleanup',
                'squash',
              ]),
            )
            .option('--rename', 'with --keep: use the story titles as commit subjects')
            .option(...acceptConfig),
        refuse: (_, { squash, keep, rename, message }) => {
          if (message !== undefined && !squash)
            return wrong('-m is the message of --squash', 'add --squash, or leave -m out')
          if (message?.trim() === '') return wrong('-m needs a text', 'leave it out to have one made')
          if (rename && !keep)
            return wrong('--rename goes with --keep', 'add --keep: ralph finish --keep --rename')
          return undefined
        },
        ask: async (
          app,
          [change],
          { cleanup, squash, keep, rename, message, acceptConfig: acceptsConfig = false },
          context,
        ): Promise<Said> => {
          const choice = cleanup
            ? 'cleanup'
            : squash
              ? 'squash'
              : keep
                ? rename
                  ? 'rename'
                  : 'keep'
                : undefined
          if (choice === undefined && !acceptsConfig) {
            const { askFinish } = await import('./finish.ts')
            return askFinish(context, app, change)
          }
          return app.control.finish({ change, choice, message, acceptsConfig })
        },
      }),
    ],
  ],
  [
    'Many changes at once:',
    [
      row({
        name: 'up',
        what: 'run several changes side by side in worktrees, and land each one that is done',
        note: `${asLoop(notOfUp)}\n\n${exitCodes}`,
        example: 'ralph up add-login add-export --jobs 3 --verify "npm test"',
        takes: (command) => {
          const bare = command
            .argument('[change...]', 'default: all that are open')
            .option('--jobs <N>', 'how many loops at once (default: 2)')
            .option('--into <branch>', 'where they land (default: the branch that is checked out)')
            .option(
              '--after <later:earlier>',
              'the first begins when the second has landed (repeatable)',
              collected,
            )
            .addOption(
              new Option('--land <how>', 'as one commit, or with its history').choices(['squash', 'merge']),
            )
            .option('--no-land', 'only run the loops')
            .option('--pull', 'at the end, update your checkout to what landed')
          const flags = addLoopOptions(bare, { except: notOfUp, isShort: true })
          return Object.assign(bare, { flags })
        },
        run: async (context, { args: [changes], options, command }) =>
          (await import('./queue.ts')).runUp(context, changes, command.flags(), {
            ...options,
            land:
              options.land === 'squash' || options.land === 'merge' || options.land === false
                ? options.land
                : undefined,
          }),
      }),
      row({
        name: 'land',
        what: 'land one change whose loop is done, proven by its gates',
        note: asLoop(notOfLand),
        example: 'ralph land add-login --into main',
        takes: (command) => {
          const bare = command
            .argument('<change>', 'its loop must be done')
            .option('--into <branch>', 'where it lands (default: the branch that is checked out)')
            .addOption(
              new Option('--land <how>', 'as one commit, or with its history').choices(['squash', 'merge']),
            )
            .option('--pull', 'at the end, update your checkout to what landed')
          const flags = addLoopOptions(bare, { except: notOfLand, isShort: true })
          return Object.assign(bare, { flags })
        },
        run: async (context, { args: [change], options, command }) =>
          (await import('./queue.ts')).runUp(context, [], command.flags(), options, change),
      }),
      row({
        name: 'queue',
        what: 'the merge queue: what runs, what waits and why; add, remove, retry, first, pull',
        example: 'ralph queue retry add-login',
        takes: (command) =>
          command
            .addArgument(
              new Argument('[what]', 'what to do').choices([
                'add',
                'remove',
                'retry',
                'first',
                'pull',
              ] as const),
            )
            .argument('[change]', 'which one')
            .option('--watch', 'follow it until it ends')
            .option('--json', 'as JSON'),
        run: async (context, { args: [what, change], options }) => {
          const { watchQueue, runQueue } = await import('./queue.ts')
          if (what === undefined && options.watch) return watchQueue(context)
          if (what !== undefined && what !== 'pull' && change === undefined)
            throw wrong(`queue ${what} needs a change`, `for example: ralph queue ${what} add-login`)
          if (what === 'pull' && change !== undefined)
            throw wrong('queue pull takes no change', 'it takes all that landed: ralph queue pull')
          return runQueue(context, what, change ?? '', options.json === true)
        },
      }),
    ],
  ],
  [
    'See the plan:',
    [
      report({
        name: 'list',
        what: 'the changes, with stories, tasks and state',
        example: 'ralph list',
        takes: (command) => command,
        ask: ({ observe }) => observe.list(),
        text: async (list, page) => (await import('../print/list.ts')).listText(list, page),
      }),
      report({
        name: 'show',
        what: 'one change: stories, tasks, scenarios',
        example: 'ralph show add-login',
        takes: optionalChange('default: the only open one; on a terminal you are asked'),
        ask: async ({ observe }, [change], _, context) => {
          const { withPicked } = await import('./pick.ts')
          return withPicked(context, change, (name) => observe.show(name))
        },
        text: async (detail, { paint, columns = Infinity }) =>
          (await import('../print/show.ts')).showText(detail, { paint, columns }),
      }),
      report({
        name: 'prompt',
        what: 'the next prompt, word for word; starts nothing',
        example: 'ralph prompt add-login --story 2',
        takes: (command) =>
          command
            .argument('[change]', 'default: the only open one; on a terminal you are asked')
            .option('--story <ID>', 'for this story instead of the next one'),
        ask: async ({ observe }, [change], { story }, context) => {
          const { withPicked } = await import('./pick.ts')
          return withPicked(context, change, (name) => observe.prompt({ change: name, storyId: story }))
        },
        isVerbatim: () => true,
        text: ({ prompt }) => prompt,
      }),
    ],
  ],
  [
    'See what happened:',
    [
      row({
        name: 'status',
        what: 'where a loop stands, and what to type next',
        example: 'ralph status add-login --watch',
        takes: (command) =>
          command
            .argument('[change]', 'default: every loop of this repository')
            .option('--watch', 'keep watching until no loop is running')
            .option('--json', 'as JSON'),
        run: async (context, { args: [change], options: { watch = false, json = false } }) => {
          const { showStatus } = await import('./status.ts')
          await showStatus(context, change, { watch, json })
        },
      }),
      report({
        name: 'history',
        what: 'every attempt: story, result, time, tokens, cost',
        example: 'ralph history add-login --all',
        takes: (command) =>
          optionalChange()(command)
            .option('--all', 'earlier runs too')
            .addOption(
              new Option('--run <N>', 'only this earlier run (1 is the first)')
                .argParser(runNumber)
                .conflicts('all'),
            ),
        ask: ({ observe }, [change], { all, run }) => observe.history(change, all ? 'all' : run),
        json: ({ change_id, iterations, stories, by_hand, earlier_runs, runs }) => ({
          change_id,
          iterations,
          stories,
          ...(by_hand !== undefined && { by_hand }),
          earlier_runs,
          ...(runs !== undefined && {
            runs: runs.map((run) => ({
              number: run.number,
              name: run.name,
              status: run.status,
              iterations: run.iterations,
              stories: run.stories,
              ...(run.by_hand !== undefined && { by_hand: run.by_hand }),
            })),
          }),
        }),
        text: async (history, { paint, columns = Infinity }) =>
          (await import('../print/history.ts')).historyText(history, { paint, columns }),
      }),
      row({
        name: 'logs',
        what: 'what the agent said',
        example: 'ralph logs add-login -f',
        takes: (command) =>
          command
            .argument('[n]', "the attempt's number (default: the latest)")
            .argument('[change]', leftOut)
            .option('-f, --follow', 'keep printing until the loop ends')
            .option('--iteration <N>', 'the same as n', iterationNumber)
            .addOption(
              new Option(
                '--gate [N]',
                'what the gates of attempt N printed (default: the last that failed, else the last)',
              )
                // What follows it may be the change's name.
                .argParser((text): number | string => (isNumber(text) ? iterationNumber(text) : text))
                .conflicts(['follow', 'iteration']),
            )
            .addOption(new Option('--raw', 'every byte, control characters too').conflicts('json'))
            .option('--json', 'one JSON object per piece of output'),
        run: async ({ io, app, readerGone }, { args, options }) => {
          const { follow = false, json = false, raw = false } = options
          const [gate, words] =
            typeof options.gate === 'string'
              ? ([true, [options.gate, ...args]] as const)
              : ([options.gate, args] as const)
          const [n, change] = numberFirst(words)
          const iteration = options.iteration ?? (n === undefined ? undefined : iterationNumber(n))
          const { observe } = await app()
          const { logFoot, logGate, logHead, logWriter } = await import('../print/log.ts')
          const { isTerminal } = await import('../io.ts')
          // What a gate printed may be set in columns.
          const { write, head, end } = logWriter(io.stdout, { json, raw, isTalk: gate === undefined })
          const began = (attempt: LoggedAttempt): void => head(logHead(attempt, io))
          const asked =
            gate === undefined
              ? { iteration, follow }
              : { iteration: gate === true ? iteration : gate, follow: false, isOfGates: true }
          const isWatched = follow && isTerminal(io.stdout)
          const gated: LogRequest['gate'] = (event) => {
            if (event.type === 'gate.ended' || isWatched) head(logGate(event, io), false)
          }
          const ended: LogRequest['ended'] = (...attempt) => head(logFoot(attempt, io))
          // Whoever opens a second terminal first waits for the loop; a script would wait for ever.
          const waits = (): void => head(['No attempt has begun yet: waiting for it (Ctrl-C ends).'])
          const early = follow && iteration === undefined && isTerminal(io.stdout) ? { waits } : {}
          await observe.logs({
            change,
            ...asked,
            ...early,
            began,
            gate: gated,
            ended,
            write,
            stop: readerGone,
          })
          end()
        },
      }),
      report({
        name: 'why',
        what: 'why the last run ended as it did, and what to do now',
        example: 'ralph why add-login',
        takes: (command) =>
          optionalChange()(command).option('--trace', 'each decision, with its rule and inputs'),
        ask: async ({ observe }, [change]) => {
          const decisions = await observe.why(change)
          return { decisions, reports: await observe.status(decisions.change_id) }
        },
        json: ({ decisions }) => decisions,
        text: async ({ decisions, reports: [report] }, { paint, columns = Infinity }, { trace }) => {
          const { traceText, whyText } = await import('../print/why.ts')
          return trace || report === undefined
            ? traceText(decisions, { paint, columns })
            : whyText(report, decisions.failed_gate, { paint, nowMs: Date.now(), columns })
        },
      }),
      report({
        name: 'usage',
        what: 'tokens and cost since Monday, or since another time',
        example: 'ralph usage --since 7d --by day',
        takes: (command) =>
          command
            .option('--since <WHEN>', 'yesterday, 7d, 1h, or a date or time such as 2026-02-09T14:00', moment)
            .option('--today', 'since midnight')
            .option('--week', 'since Monday (the default)')
            .addOption(
              new Option('--format <format>', 'output format').choices(['text', 'json']).default('text'),
            )
            .addOption(
              new Option('--by <what>', 'break it down').choices(['agent', 'model', 'story', 'day'] as const),
            ),
        jsonHelp: 'the same as --format json',
        refuse: (_, options) => refuseSpan(spansOf(options)),
        ask: ({ observe }, _, options) =>
          observe.usage({ since: spansOf(options)[0] ?? 'week', by: options.by }),
        text: async (summary, { columns = 80 }) =>
          (await import('../print/report-usage.ts')).usageText(summary, columns),
      }),
      row({
        name: 'report',
        what: 'a run as a document: text, Markdown, HTML or JSON',
        example: 'ralph report add-login --output report.html --open',
        takes: (command) =>
          command
            .argument('[change]', leftOut)
            .addOption(
              new Option(
                '--format <format>',
                'output format (default: text, or as the file name ends)',
              ).choices(['text', 'md', 'html', 'json'] as const),
            )
            .option('-o, --output <file>', 'write it to this file')
            .option('--force', 'overwrite a file that is not a report')
            .option('--open', 'open it (as HTML, unless --format says otherwise)')
            .option('--json', 'the same as --format json'),
        run: async (
          context,
          { args: [change], options: { format, output, open = false, force = false, json } },
        ) => {
          const { showReport } = await import('./report.ts')
          await showReport(context, change, { format: json ? 'json' : format, output, open, force })
        },
      }),
      report({
        name: 'learnings',
        what: 'what the agents noted for one another',
        example: 'ralph learnings add-login',
        takes: optionalChange(),
        ask: ({ observe }, [change]) => observe.learnings(change),
        isVerbatim: () => true,
        text: async ({ text, path }) =>
          text === ''
            ? `nothing noted yet; notes would be in\n  ${path}`
            : (await import('../print/text.ts')).clean(text),
      }),
    ],
  ],
  [
    'Every attempt is kept:',
    [
      report({
        name: 'attempts',
        what: 'every attempt, failed ones too',
        example: 'ralph attempts add-login',
        takes: (command) => optionalChange()(command).option('--all', 'those of earlier runs too'),
        ask: ({ observe }, [change]) => observe.attempts(change),
        json: ({ change_id, attempts, by_hand, earlier }) => ({
          change_id,
          attempts,
          ...(by_hand !== undefined && { by_hand }),
          earlier,
        }),
        text: async (list, { paint, columns = Infinity }, { all }) =>
          (await import('../print/attempts.ts')).attemptsText(list, { paint, columns }, all),
      }),
      row({
        name: 'diff',
        what: 'what an attempt changed, as a patch (default: the last one that failed)',
        example: 'ralph diff 3 --stat',
        takes: (command) =>
          command
            .argument('[n]', "the attempt's number (default: the last one that failed)")
            .argument('[change]', leftOut)
            .addOption(new Option('--all', 'everything that the run has saved so far').conflicts('run'))
            .option('--stat', 'only the files, and how many lines')
            .option('--run <N>', 'of this earlier run (1 is the first)', runNumber)
            .option('--json', 'as JSON'),
        run: async (context, { args, options }) => {
          const { all: isAll = false, stat = false, json = false, run } = options
          // With --all there is no number.
          const [named, change] = isAll && args[1] === undefined ? [undefined, args[0]] : numberFirst(args)
          // `2.1`: a task, or the first attempt of a story; the answer names the attempts there are.
          const isOther = named?.includes('.') === true
          const other = isOther ? { other: named } : {}
          const n = named === undefined || isOther ? undefined : iterationNumber(named)
          const { showDiff } = await import('./diff.ts')
          await showDiff(context, { change, n, isAll, run, ...other }, { stat, json })
        },
      }),
      act({
        name: 'restore',
        what: 'bring the changes of an attempt back',
        example: 'ralph restore 3 --to /tmp/attempt-3',
        takes: (command) =>
          attemptNumber(command).option('--to <dir>', 'into this folder instead of the work tree'),
        ask: ({ control }, [n, change], { to }) => control.restore({ change, n, to }),
      }),
      act({
        name: 'clean',
        what: 'delete what ralph has kept of a change: --attempts',
        example: 'ralph clean add-login --attempts',
        takes: (command) =>
          optionalChange('default: the only one that ever had a loop')(command)
            .option('--attempts', 'all its attempts; they cannot be brought back')
            .option('-y, --yes', 'do not ask'),
        refuse: (_, { attempts }) =>
          attempts
            ? undefined
            : wrong(
                'nothing selected: say what to delete',
                'see what there is with: ralph attempts; delete it with: ralph clean --attempts',
              ),
        ask: async ({ control }, [change], { attempts = false, yes = false }, { io, readerGone }) => {
          const { confirmAt } = await import('../print/ask.ts')
          return control.clean({ change, attempts, agrees: yes ? undefined : confirmAt(io, readerGone) })
        },
      }),
    ],
  ],
  [
    'Set up:',
    [
      row({
        name: 'demo',
        what: 'watch a whole loop in a throw-away repository; needs no key and no network',
        example: 'ralph demo',
        takes: (command) =>
          command
            .addOption(
              new Option('--agent <name>', 'a real agent instead of the scripted one').default('demo'),
            )
            .option('--parallel', 'six changes, three at once, each landed when it is done')
            .option('--remove', 'delete the folder at the end'),
        run: async (context, { options: { agent, parallel = false, remove = false } }) => {
          const { showDemo } = await import('./demo.ts')
          await showDemo(context, { agent, parallel, remove })
        },
      }),
      act({
        name: 'init',
        what: 'write a first ralph.yaml, with the agent and the gates found here',
        note: 'It asks before it writes, and never overwrites a file. Without a terminal and\nwithout --yes it only shows what it would write (exit code 2).',
        example: 'ralph init',
        takes: (command) =>
          command
            .option('-y, --yes', 'do not ask')
            .option('--mcp', 'also .mcp.json, by which Claude Code finds `ralph mcp`'),
        ask: async (app, _, { yes = false, mcp = false }, context, json) =>
          (await import('./init.ts')).setUp(app, context, { yes, mcp, json }),
      }),
      report({
        name: 'config',
        what: 'every setting, its value and where it comes from',
        example: 'RALPH_MAX_RETRIES=1 ralph config',
        takes: (command) => command.argument('[setting]', 'only this one'),
        ask: async ({ observe }, [name]) => {
          const config = await observe.config()
          return name === undefined
            ? config
            : { ...config, entries: [await entryNamed(config.entries, name)] }
        },
        also: async ({ warnings }, { io }) => {
          const [{ oneLine }, { folded }] = await Promise.all([
            import('../print/text.ts'),
            import('../print/layout.ts'),
          ])
          for (const warning of warnings)
            io.stderr.write(`${folded(`warning: ${oneLine(warning)}`, io.stderr.columns)}\n`)
        },
        json: async ({ entries }) => (await import('../print/config.ts')).configJson(entries),
        text: async (config, { paint, columns }) =>
          (await import('../print/config.ts')).configText(config, { paint, columns }),
      }),
      report({
        name: 'doctor',
        what: 'check git, openspec, agents and this repository; says how to fix problems',
        note: 'Exit code 2: a loop cannot run here yet; 1: it can, but a gate fails now.',
        example: 'ralph doctor',
        takes: (command) =>
          command
            .option('--fix', "fix what is ralph's own and safe to fix; says what it did")
            .option('--gates', 'run each gate of ralph.yaml once, here: does it pass without an agent?')
            .option('--verify <CMD>', 'run this gate instead, in the same way (repeatable)', collected)
            .option('--agent <name>', 'check this agent, as for ralph loop --agent')
            .option('--agent-command <CMD>', 'check this program as the agent'),
        ask: async (
          { observe, control },
          _,
          { fix = false, gates = false, verify = [], agent, agentCommand },
        ) => {
          const flags = {
            ...(agent !== undefined && { agent }),
            ...(agentCommand !== undefined && { agent_command: agentCommand }),
          }
          const how = { runsGates: gates || verify.length > 0, verify, flags }
          if (fix) {
            const fixes = await control.fix()
            return { ...(await observe.doctor(how)), fixes }
          }
          const found = await observe.doctor(how)
          const hasDied = found.checks.some(
            ({ name, verdict }) => name.startsWith('loop ') && verdict === 'warning',
          )
          if (hasDied) await control.recordDeaths()
          return found
        },
        also: ({ checks }, { exitWith }) => {
          if (checks.some((check) => check.verdict === 'problem')) exitWith(2)
          else if (checks.some((check) => check.is_red)) exitWith(1)
        },
        text: async (found, page) => (await import('../print/doctor.ts')).doctorText(found, page),
      }),
      report({
        name: 'statusline',
        what: 'the loop in one line, for the status line of Claude Code or tmux',
        example: 'ralph statusline',
        takes: (command) => command,
        ask: ({ observe }) => observe.statusLine(),
        text: ({ text }) => text,
      }),
      row({
        name: 'mcp',
        what: 'the MCP server on stdio: lets an agent see the loops; with --allow-control also steer them',
        note: 'Claude Code: claude mcp add ralph -- ralph mcp',
        example: 'ralph mcp',
        takes: (command) =>
          command.option('--allow-control', 'let its client start, stop, resume and finish loops'),
        run: async (context, { options: { allowControl: allowsControl = false }, program }) => {
          const { runMcp } = await import('./mcp.ts')
          await runMcp(context, { allowsControl, version: program.version() ?? '' })
        },
      }),
      row({
        name: 'completion',
        what: 'print the completion script for your shell',
        example: 'source <(ralph completion bash)',
        takes: (command) =>
          command.addArgument(
            new Argument('<shell>', 'your shell').choices(['bash', 'zsh', 'fish'] as const),
          ),
        run: async ({ io }, { args: [shell] }) => {
          const { completionScripts } = await import('./completion-scripts.ts')
          io.stdout.write(completionScripts[shell])
        },
      }),
      row({
        name: 'complete',
        isAboutAll: true,
        takes: (command) => command.argument('[words...]'),
        run: async (context, { args: [words], program }) => {
          const { answerTab } = await import('./complete.ts')
          await answerTab(context, program, words)
        },
      }),
      // Commander's own help command has no answer for a wrong name.
      row({
        name: 'help',
        isAboutAll: true,
        what: 'help for a command',
        example: 'ralph help loop',
        takes: (command) => command.argument('[command]'),
        run: async (_, { args: [name], program }) => {
          if (name === undefined) return program.outputHelp()
          const found = program.commands.find((command) =>
            [command.name(), ...command.aliases()].includes(name),
          )
          if (found !== undefined) return found.outputHelp()
          const { nearest } = await import('../../core/nearest.ts')
          const names = program.commands.map((command) => command.name())
          const near = nearest(name, names)
          const hint = near === undefined ? 'see: ralph --help' : `Did you mean ${near}?`
          throw wrong(`unknown command '${name}'`, hint)
        },
      }),
    ],
  ],
]

function wrong(message: string, hint: string): RalphError {
  return new RalphError('usage', message, { hint })
}

/** People copy names from the flags. */
async function entryNamed(entries: readonly SettingEntry[], name: string): Promise<SettingEntry> {
  const wanted = name.replace(/^--/, '').replaceAll('-', '_')
  const found = entries.find(({ key }) => key === wanted)
  if (found !== undefined) return found
  const { nearest } = await import('../../core/nearest.ts')
  const near = nearest(
    wanted,
    entries.map(({ key }) => key),
  )
  throw wrong(
    `there is no setting "${name}"`,
    near === undefined ? 'see: ralph config' : `Did you mean ${near}?`,
  )
}

/** `ralph diff 2 add-login`, `ralph logs add-login 2`, `ralph diff add-login`: what is a number is no change. */
function numberFirst([first, second]: readonly (string | undefined)[]): readonly (string | undefined)[] {
  return !isNumber(first) && (second === undefined || isNumber(second)) ? [second, first] : [first, second]
}

function isNumber(word = ''): boolean {
  return /^#?\d[\d.]*$/.test(word)
}

function iterationNumber(text: string): number {
  const [, digits] = /^#?([1-9]\d{0,8})$/.exec(text) ?? []
  if (digits === undefined)
    throw new InvalidArgumentError('Type the number of an attempt, such as 3; they are in: ralph attempts')
  return Number(digits)
}

function runNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new InvalidArgumentError('Type the number of an earlier run, 1 or more; see: ralph history --all')
  return Number(text)
}

interface Span {
  readonly since?: string | undefined
  readonly today?: true | undefined
  readonly week?: true | undefined
}

function spansOf({ since, today, week }: Span): readonly string[] {
  return [since, today && 'today', week && 'week'].filter((word) => typeof word === 'string')
}

function refuseSpan({ length }: readonly string[]): RalphError | undefined {
  if (length <= 1) return undefined
  return wrong(
    'use only one of --since, --today and --week',
    'type: ralph usage --today, ralph usage --week, or ralph usage --since 7d',
  )
}

function moment(text: string): string {
  if (/^(?:today|yesterday|week|\d{1,4}[mhdw])$/.test(text)) return text
  const day = /^\d{4}-\d{2}-\d{2}/.exec(text)?.[0] ?? ''
  if (!isRealDay(day) || Number.isNaN(Date.parse(text))) {
    throw new InvalidArgumentError(
      'Type yesterday, 7d (days), 1h (hours), or an ISO time such as 2026-02-09T14:03',
    )
  }
  return text
}

/** Date.parse takes the 30th of February for the 2nd of March. */
function isRealDay(day: string): boolean {
  const moment = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(moment.getTime()) && moment.toISOString().startsWith(day)
}
