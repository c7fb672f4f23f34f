import { chmod, readFile, readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { fileTools } from '../../../src/tools/files/file-tools.js';
import { plainName } from '../../../src/tools/files/open-file.js';
import { yard, type Yard } from './support.js';

const write = async (place: Yard, requested: string): Promise<string> =>
  (await place.failure('write_file', { path: requested, content: 'x' })).message;

/** Names of files that would be executed, obeyed, or loaded. */
const EXECUTED = `
  perdure.config.ts perdure.config.js perdure.config.mjs PERDURE.CONFIG.TS sub/perdure.config.ts
  package.json Package.JSON package-lock.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lockb
  .github/workflows/ci.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile
  azure-pipelines.yml bitbucket-pipelines.yml action.yml .pre-commit-config.yaml lefthook.yml .husky/pre-commit
  .git .gitmodules .gitattributes bare/HEAD bare/hooks/post-checkout .githooks/x
  .vscode/tasks.json .vscode/settings.json .idea/x.xml a.code-workspace .devcontainer/devcontainer.json
  .npmrc .yarnrc.yml .pnpmfile.cjs .envrc .env .bashrc .zshrc .profile .ssh/authorized_keys .config/fish/x
  Makefile makefile GNUmakefile rules.mk justfile Justfile Taskfile.yml Gruntfile.js gulpfile.mjs Rakefile
  CMakeLists.txt BUILD BUILD.bazel Tiltfile Procfile Vagrantfile Brewfile
  Dockerfile Dockerfile.dev web.Dockerfile docker-compose.yml docker-compose.override.yml compose.yaml
  tsconfig.json tsconfig.build.json jsconfig.json vite.config.ts vitest.live.config.ts eslint.config.js
  .eslintrc.json prettier.config.mjs .prettierrc jest.config.json webpack.config.cjs babel.config.json knip.json
  playwright.config.ts next.config.mjs vitest.workspace.json karma.conf.js
  setup.py setup.cfg conftest.py pyproject.toml tox.ini requirements-dev.txt Pipfile sitecustomize.py x.pth
  Cargo.toml build.rs go.mod pom.xml build.gradle gradle.properties app.csproj Directory.Build.props composer.json
  deploy.sh run.ps1 start.bat x.command tool.exe lib.so module.node main.tf x.desktop perdure.service crontab
  src/index.ts lib/x.mjs app.py tool.rb
  node_modules/x/readme.txt venv/readme.txt __pycache__/notes.txt
  package.yaml mkdocs.yml book.toml mise.toml AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md .cursor/rules/x.md .claude/settings.json mcp.json
  PACKAG~1.JSO
  mcp-owner-1000 authorized_keys known_hosts SKILL.md skills/x/SKILL.md Skill.MD AGENT.md CONVENTIONS.md
  x.instructions.md release.prompt.md settings.json settings.local.json appsettings.Production.json config.json
  claude_desktop_config.json cline_mcp_settings.json x.mcp.json manifest.json package.nls.json composer.lock.json
  hooks.json plugin.json values.yaml data.yml notes.toml page.svg feed.xml x.conf rules.mdc CODEOWNERS notes
  CON.md nul.txt a/aux/x.md x.md.exe
`
  .trim()
  .split(/\s+/);

describe('write_file refuses names that programs execute', () => {
  it.each(EXECUTED)('%s', async (requested) => {
    const place = await yard();
    expect(await write(place, requested)).toContain('is not written: ');
    expect(await readdir(place.root)).toEqual([]);
  });

  it.each([
    'package.json.',
    'package.json ',
    'package.json . .',
    'package\u200b.json',
    '\ufeffpackage.json',
    'package.jso\u00adn',
    'p\u2060ackage.json',
    'package.json\u{e0061}',
    'packag\u0435.json'.replace('\u0435', '\uff45'),
    '\uff0egithub/workflows/ci.yml',
    '\u200b.github/workflows/ci.yml',
    '.github /workflows/ci.yml',
    'perdure.config.t\u017f',
    'Ma\u212aefile',
    'package.json::$DATA',
    'package.json:x',
    ' package.json',
    '\u200b',
    'package.json\u202e',
    'notes.md:evil.sh',
    'notes.md:evil',
    'SKILL.md:notes.md',
    'authorized_keys:x.md',
    'sub\uff3cpackage.json',
    'notes.md\u200b.sh',
    'notes.sh\u3002md'.replace('\u3002', '\ufe52') + '.\uff53h',
  ])('%j, which a file system or a person may confuse with such a name', async (requested) => {
    const place = await yard();
    expect(await write(place, requested)).toContain('is not written: ');
    expect(await readdir(place.root)).toEqual([]);
  });

  it('a folder with such a name behind a link, and a program behind a harmless name', async () => {
    const place = await yard();
    await place.put({ '.github/workflows/ci.yml': 'on: push\n', 'tool.txt': '#!/bin/sh\n' });
    await symlink('.github/workflows', path.join(place.root, 'notes'));
    await chmod(path.join(place.root, 'tool.txt'), 0o755);
    expect(await write(place, 'notes/today.md')).toContain('begin with a dot');
    expect(await write(place, 'tool.txt')).toContain('it is marked as executable');
    expect(await readFile(path.join(place.root, 'tool.txt'), 'utf8')).toBe('#!/bin/sh\n');
  });

  it('and names the alternatives for the model and for a person', async () => {
    expect(await write(await yard(), 'package.json')).toBe(
      '"package.json" is not written: tools execute or obey files of this name. Choose another ' +
        'name, or ask a person, who can allow it (allowWrite of fileTools, --allow-write)',
    );
  });

  it('but writes documents and data', async () => {
    const place = await yard();
    const names = ['README.md', 'notes/today.txt', 'data/rows.csv', 'a/b/page.html', 'result.json'];
    names.push(
      'LICENSE',
      'agents/list.md',
      'rows.jsonl',
      'Übersicht.MD',
      'a.b.c.txt',
      'map.geojson',
    );
    for (const name of names) {
      expect(await place.call('write_file', { path: name, content: 'x' })).toContain('wrote ');
    }
  });

  it('unless the options allow a name or a path', async () => {
    const place = await yard({
      allowWrite: ['package.json', '*.sh', 'src/**', '*.ts', '.github/workflows/ci.yml'],
    });
    const allowed = ['package.json', 'sub/package.json', 'x.sh', 'src/a/b.ts'];
    for (const requested of [...allowed, '.github/workflows/ci.yml']) {
      expect(await place.call('write_file', { path: requested, content: 'x' })).toContain('wrote ');
    }
    const refused = ['.husky/x.sh', 'src/.env', 'src/.git/config', '.github/workflows/other.yml'];
    const others = ['package-lock.json', 'src/node_modules/x.ts', 'src/perdure.config.ts'];
    for (const requested of [...refused, ...others]) {
      expect(await write(place, requested)).toContain('is not written: ');
    }
  });

  it('and does not exist unless the options add it', () => {
    expect(fileTools({ root: '.' }).map(({ name }) => name)).not.toContain('write_file');
  });
});

const SECRET = `
  .env .env.local .env.production .ENV .envrc sub/.env server.pem tls/private.key id_rsa .ssh/id_ed25519
  .ssh/known_hosts .git/config .git/modules/x/config .npmrc .yarnrc.yml .netrc _netrc .pypirc .pgpass
  .aws/credentials .aws/config .kube/config .docker/config.json .git-credentials .perdure/live/w1.json
  .perdure/perdure.db .config/gh/hosts.yml store.p12 app.keystore terraform.tfstate secrets.yaml credentials.json
  service-account-prod.json .bash_history backup.pem.bak prod.env .npmrc~ .npmrc.bak .netrc.swp .id_rsa.swp
  .git/config.orig id_rsa.old terraform.tfstate.json state/live/41-0b5a1c9e-1d2e-4f3a-8b4c-5d6e7f8a9b0c.json
`
  .trim()
  .split(/\s+/);

describe('secrets', () => {
  it.each(SECRET)('%s is neither read nor searched', async (name) => {
    const place = await yard();
    await place.put({ [name]: 'token=hunter2\n', 'notes.md': 'hello\n' });
    for (const [tool, input] of [
      ['read_file', { path: name }],
      ['search_text', { path: name, query: 'token' }],
    ] as const) {
      const { name: type, message } = await place.failure(tool, input);
      expect(type).toBe('ToolError');
      expect(message).toContain('is not read: files of this name hold secrets');
    }
    const folder = name.includes('/') ? path.posix.dirname(name) : '.';
    const found = await place.call('search_text', { path: folder, query: 'hunter2' });
    expect(found).toContain('0 matches in 0 files');
    expect(found).toContain(`[not searched, because their names suggest secrets: ${name}]`);
  });

  it('are not read by another name', async () => {
    const place = await yard();
    await place.put({ '.env': 'token=hunter2\n' });
    await symlink('.env', path.join(place.root, 'notes.md'));
    await symlink('.', path.join(place.root, 'here'));
    for (const requested of ['notes.md', 'here/.env', './/.env', path.join(place.root, '.env')]) {
      const { message } = await place.failure('read_file', { path: requested });
      expect(message).toContain('is not read');
    }
  });

  it('are read if the options allow it, but denied paths never are', async () => {
    const options = { allowRead: ['.env.example', '*.pem'], deny: ['./State'] };
    const place = await yard({ ...options, allowWrite: ['**'] });
    const files = { '.env.example': 'a=b', 'x.pem': 'pem', '.env': 'c', 'state/db.md': 'rows' };
    await place.put({ ...files, 'sub/state/x.md': 'other' });
    expect(await place.call('read_file', { path: '.env.example' })).toContain('a=b');
    expect(await place.call('read_file', { path: 'x.pem' })).toContain('pem');
    expect(await place.call('read_file', { path: 'sub/state/x.md' })).toContain('other');
    for (const requested of ['.env', 'state/db.md']) {
      expect((await place.failure('read_file', { path: requested })).message).toContain(
        'is not read',
      );
    }
    expect(await write(place, 'state/new.md')).toContain('is not written');
  });

  it.each([
    ['prive\u0301', 'priv\u00e9/a.md'],
    ['priv\u00e9', 'prive\u0301/a.md'],
    ['a: b.md', 'a: b.md'],
    ['private/', 'private/a.md'],
    ['Notes.', 'notes./a.md'],
  ])('are denied by %j at %j', async (pattern, name) => {
    const place = await yard({ deny: [pattern] });
    await place.put({ [name]: 'token=hunter2\n' });
    expect((await place.failure('read_file', { path: name })).message).toContain('is not read');
    expect(await place.call('search_text', { query: 'hunter2' })).toContain('0 matches');
  });

  it('do not hide code and documents about them', async () => {
    const place = await yard();
    for (const name of ['src/secrets.ts', 'docs/credentials.md', 'id_rsa.pub', 'environment.md']) {
      await place.put({ [name]: 'public\n' });
      expect(await place.call('read_file', { path: name })).toContain('public');
    }
  });
});

test('a plain name is unchanged', () => {
  for (const name of ['readme.md', 'a b.txt', 'übung.txt', '.env', '日本.md']) {
    expect(plainName(name)).toBe(name);
  }
});
