// Which settings of a repository may stay when they changed while an attempt ran, key by key.
import { describe, expect, test } from 'vitest'
import { mayRun, settleGitSettings, shownSetting, type GitSetting } from '../../src/core/ownership.ts'

describe('O10, M3: keys that run nothing are bookkeeping, whoever wrote them', () => {
  test.each([
    ['branch.main.remote', 'origin'],
    ['branch.feature/x.y.merge', 'refs/heads/feature/x.y'],
    ['branch.main.rebase', 'true'],
    ['branch.main.description', 'what it is for'],
    ['branch.main.vscode-merge-base', 'origin/main'],
    ['branch.remote.remote', 'origin'],
    ['remote.origin.url', 'https://example.org/a.git'],
    ['remote.origin.url', 'git@example.org:a/b.git'],
    ['remote.origin.url', '../other repository'],
    ['remote.origin.url', 'ssh://[::1]:22/a'],
    ['remote.origin.pushurl', 'ssh://git@example.org/a'],
    ['remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*'],
    ['remote.up.stream.gh-resolved', 'base'],
    ['user.email', 'ada@example.org'],
    ['gc.auto', '0'],
    ['maintenance.strategy', 'incremental'],
    ['lfs.https://example.org/a.git/info/lfs.access', 'basic'],
    ['lfs.repositoryformatversion', '0'],
    ['submodule.lib.url', 'https://example.org/lib.git'],
    ['submodule.lib.active', 'true'],
    ['submodule.lib.update', 'rebase'],
    ['extensions.worktreeconfig', 'true'],
    ['core.repositoryformatversion', '1'],
    ['pull.rebase', 'true'],
    ['diff.algorithm', 'histogram'],
    ['color.ui', null],
  ])('%s = %s', (key, value) => expect(mayRun({ key, value })).toBe(false))
})

describe('O10, M3: keys that make git run, read or send something, and all that nobody knows', () => {
  test.each([
    ['core.hookspath', '.husky/_'],
    ['core.fsmonitor', 'touch x'],
    ['core.fsmonitor', null],
    ['core.sshcommand', 'ssh -i x'],
    ['core.pager', 'less'],
    ['core.editor', 'vi'],
    ['core.worktree', '/nowhere'],
    ['core.bare', 'true'],
    ['core.attributesfile', 'x'],
    ['core.excludesfile', 'x'],
    ['core.filemode', 'false'],
    ['core.repositoryformatversion', '2'],
    ['alias.st', 'status'],
    ['filter.lfs.clean', 'git-lfs clean -- %f'],
    ['diff.external', 'x'],
    ['diff.nb.command', 'x'],
    ['diff.nb.textconv', 'x'],
    ['merge.ours.driver', 'true'],
    ['merge.tool', 'x'],
    ['credential.helper', 'store'],
    ['credential.https://example.org.helper', '!x'],
    ['gpg.program', 'x'],
    ['gpg.ssh.defaultkeycommand', 'x'],
    ['sequence.editor', 'x'],
    ['include.path', '../.gitconfig'],
    ['includeif.gitdir:/.path', 'x'],
    ['url.ext::sh -c x.insteadof', 'https://example.org'],
    ['http.proxy', 'http://example.org'],
    ['http.https://example.org.extraheader', 'x'],
    ['pager.status', 'x'],
    ['difftool.x.cmd', 'x'],
    ['mergetool.x.cmd', 'x'],
    ['guitool.x.cmd', 'x'],
    ['man.x.cmd', 'x'],
    ['browser.x.cmd', 'x'],
    ['trailer.x.command', 'x'],
    ['remote.origin.uploadpack', 'x'],
    ['remote.origin.receivepack', 'x'],
    ['remote.origin.vcs', 'x'],
    ['remote.origin.proxy', 'x'],
    ['remote.origin.url', 'ext::sh -c "touch x"'],
    ['remote.origin.url', 'fd::7'],
    ['remote.origin.url', '--upload-pack=x'],
    ['remote.origin.url', 'https://example.org/\nx'],
    ['branch.main.remote', 'ext::sh -c x'],
    ['branch.main.mergeoptions', '-s x'],
    ['submodule.lib.update', '!x'],
    ['submodule.lib.url', 'ext::x'],
    ['gc.recentobjectshook', 'x'],
    ['lfs.customtransfer.x.path', 'x'],
    ['init.templatedir', 'x'],
    ['interactive.difffilter', 'x'],
    ['uploadpack.packobjectshook', 'x'],
    ['extensions.objectformat', 'sha256'],
    ['pull.twohead', 'x'],
    ['of.tomorrow', 'x'],
  ])('%s = %s', (key, value) => expect(mayRun({ key, value })).toBe(true))
})

describe('O10, M3: what an attempt changed, key by key', () => {
  const setting = (key: string, value: string | null): GitSetting => ({ key, value })
  const before = [
    setting('core.bare', 'false'),
    setting('credential.helper', ''),
    setting('credential.helper', 'store'),
    setting('remote.origin.url', 'https://example.org/a'),
  ]
  test.each<[string, GitSetting[], string[], boolean]>([
    ['nothing', before, [], false],
    ['a branch set to follow another', [...before, setting('branch.main.remote', 'origin')], [], true],
    ['a remote taken away', before.slice(0, 3), [], true],
    ['hooks', [...before, setting('core.hookspath', 'x')], ['core.hookspath'], false],
    ['one of two values', before.filter(({ value }) => value !== ''), ['credential.helper'], false],
    [
      'their order',
      [before[0], before[2], before[1], before[3]].flatMap((one) => one ?? []),
      ['credential.helper'],
      false,
    ],
    [
      'the address of a remote',
      [...before.slice(0, 3), setting('remote.origin.url', 'ext::x')],
      ['remote.origin.url'],
      false,
    ],
    ['both kinds', [...before.slice(1), setting('user.name', 'a')], ['core.bare'], true],
  ])('%s', (_, now, undone, stays) => {
    const settled = settleGitSettings(before, now)
    expect(settled.undone.map(({ key }) => key)).toEqual(undone)
    expect(settled.stays).toBe(stays)
  })

  test.each<[string, (string | null)[], string]>([
    ['core.hookspath', ['.husky/_'], 'core.hookspath = .husky/_'],
    ['core.hookspath', [], 'core.hookspath: not set'],
    ['remote.origin.url', ['https://me:secret@example.org/a'], 'remote.origin.url = https://…@example.org/a'],
    [
      'http.https://example.org.extraheader',
      ['AUTHORIZATION: basic x'],
      'http.https://example.org.extraheader = (not shown)',
    ],
    ['alias.x', ['y'.repeat(500)], `alias.x = ${'y'.repeat(119)}…`],
  ])('shown: %s', (key, values, shown) => expect(shownSetting(key, values)).toBe(shown))
})
