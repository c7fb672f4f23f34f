import { createHash } from 'node:crypto';
import type { ToolContext } from '../tool.js';

const MAX_BRACE_ALTERNATIVES = 64;
const MAX_PATTERN_CHARACTERS = 1_024;

/**
 * Makes a predicate for paths from the root, separated by `/`. `*` matches any characters but `/`,
 * `?` one character, `**` any number of folders, and `{a,b}` alternatives. A pattern without `/` is
 * matched against the last name only, so `*.ts` finds files in all folders.
 *
 * Models write the patterns, so every test takes time proportional to pattern × path: picomatch,
 * which compiles patterns to backtracking expressions, needs 40 s for `*a*a*a*a*a*a*a*ab`. Throws
 * an `Error` for a pattern of more than 1,024 characters, or whose braces multiply to more than 64
 * alternatives.
 */
export function globMatcher(pattern: string): (path: string) => boolean {
  const alternatives = expandBraces(pattern).map((text) => ({
    segments: text.replace(/^\.?\//, '').split('/'),
    isName: !text.includes('/'),
  }));
  return (path) => {
    const names = path.split('/');
    return alternatives.some(({ segments, isName }) =>
      matchSegments(segments, isName ? names.slice(-1) : names),
    );
  };
}

function expandBraces(pattern: string): string[] {
  if (pattern.length > MAX_PATTERN_CHARACTERS) {
    throw new Error(
      `expected a pattern of at most ${MAX_PATTERN_CHARACTERS} characters, got ${pattern.length}`,
    );
  }
  let expanded = [pattern];
  for (;;) {
    const next = expanded.flatMap((text) => {
      const braces = /\{([^{}]*)\}/.exec(text);
      if (!braces) return [text];
      const before = text.slice(0, braces.index);
      const after = text.slice(braces.index + braces[0].length);
      return (braces[1] ?? '').split(',').map((choice) => before + choice + after);
    });
    if (next.length > MAX_BRACE_ALTERNATIVES) {
      throw new Error(`the pattern has more than ${MAX_BRACE_ALTERNATIVES} alternatives in braces`);
    }
    if (next.every((text, index) => text === expanded[index])) return expanded;
    expanded = next;
  }
}

/**
 * Matches segment by segment; `reachable` holds how many names the segments so far may have
 * consumed.
 */
function matchSegments(segments: readonly string[], names: readonly string[]): boolean {
  let reachable = new Set([0]);
  for (const segment of segments) {
    const next = new Set<number>();
    for (const consumed of reachable) {
      if (segment === '**') {
        for (let to = consumed; to <= names.length; to += 1) next.add(to);
      } else if (matchName(segment, names[consumed])) {
        next.add(consumed + 1);
      }
    }
    reachable = next;
  }
  return reachable.has(names.length);
}

/** Matches one name. Only the last star is retried: retrying an earlier one cannot help. */
function matchName(pattern: string, name: string | undefined): boolean {
  if (name === undefined) return false;
  let at = 0;
  let star = -1;
  let retryFrom = 0;
  let index = 0;
  while (index < name.length) {
    if (pattern[at] === '*') {
      star = at;
      retryFrom = index;
      at += 1;
    } else if (pattern[at] === '?' || pattern[at] === name[index]) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      at = star + 1;
      retryFrom += 1;
      index = retryFrom;
    } else {
      return false;
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}

/** Endings of documents and of plain data, the only files that are written. */
const ENDINGS: ReadonlySet<string> = new Set(
  `
  md markdown mdown txt text rst adoc asciidoc html htm log srt vtt bib
  csv tsv psv json jsonl ndjson geojson
  `
    .trim()
    .split(/\s+/),
);

/** Documents that have no ending. */
const DOCUMENTS: ReadonlySet<string> = new Set(
  'readme license licence notice authors contributors changelog changes news todo copying'.split(
    ' ',
  ),
);

/**
 * Names with such an ending that package managers, builds, editors, code hosts, and interpreters
 * nevertheless execute or read as settings.
 */
const NAMES: ReadonlySet<string> = new Set(
  `
  npm-shrinkwrap.json deno.json jsr.json lerna.json nx.json turbo.json rush.json project.json angular.json
  nest-cli.json nodemon.json knip.json renovate.json components.json bower.json babel.json biome.json
  dprint.json cspell.json oxlint.json eslint.json prettier.json stylelint.json tslint.json typedoc.json jest.json
  mocha.json nyc.json lint-staged.json commitlint.json release.json electron-builder.json api-extractor.json
  import_map.json importmap.json vercel.json now.json wrangler.json firebase.json database.rules.json app.json
  eas.json railway.json devbox.json amplify.json cdk.json cdk.context.json azuredeploy.json template.json
  function.json host.json global.json libman.json packer.json docker-bake.json daemon.json vcpkg.json
  cmakepresets.json cmakeuserpresets.json composer.json launch.json tasks.json extensions.json keybindings.json
  devcontainer.json hooks.json plugin.json marketplace.json servers.json permissions.json policy.json policies.json
  rules.json agent.json agents.json claude.json codex.json gemini.json gemini-extension.json opencode.json crush.json
  cursor.json profile.json profiles.json
  cmakelists.txt conanfile.txt runtime.txt packages.txt apt.txt meson_options.txt crontab.txt
  skill.md skills.md conventions.md codex.md cursor.md windsurf.md copilot.md aider.md qwen.md warp.md crush.md
  jules.md opencode.md rules.md instructions.md
  `
    .trim()
    .split(/\s+/),
);

/** Forms of such names with variable parts. */
const FORMS: readonly RegExp[] = [
  // tsconfig.build.json, claude_desktop_config.json, appsettings.Production.json, mcp.json.
  /(config|settings?|preferences)([._-][^/]*)?\.json$/,
  /(^|[._-])(conf|options|manifest|workspace|setup|mcp|secrets?|hooks)([._-][^/]*)?\.json$/,
  /(^|[._-])rc\.json$/,
  /^(package|composer|serverless|docker-compose|compose)([._-].*)?\.json$/,
  /[.-]lock\.json$/,
  /^(agents?|claude|gemini|skills?|copilot-instructions)([._-].*)?\.(md|markdown|mdown|txt)$/,
  /[.-](instructions|prompt|chatmode|agent|skill|rules)\.(md|markdown|mdown|txt)$/,
  /^(requirements|constraints)([._-].*)?\.txt$/,
];

/** Folders whose content programs execute or load without naming it. */
const FOLDERS: ReadonlySet<string> = new Set(
  'node_modules bower_components site-packages dist-packages __pycache__ venv hooks githooks git-hooks'.split(
    ' ',
  ),
);

/** A short name on old Windows file systems, such as `PACKAG~1.JSO`. */
const SHORT_NAME = /^[^.~]{1,7}~\d{1,4}(\.[^.]{0,3})?$/;
/** The name of a device on Windows, whatever its ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(\..*)?$/;

/**
 * Returns why a tool must not write a file of this name for a model, or null if it may. `name` is a
 * plain name. Only documents and data are written, and no names that some program executes, loads,
 * or obeys: writing such a file controls what happens on this machine.
 */
export function whyNotWritten(name: string, kind: 'file' | 'folder'): string | null {
  if (name === '') return 'its name has no visible characters';
  if (name.startsWith('.')) return 'tools read their settings from names that begin with a dot';
  if (/[\\/]/.test(name)) return 'its name has a character that separates folders';
  if (SHORT_NAME.test(name)) return 'it may be the short name of another file';
  if (DEVICE.test(name)) return 'it is the name of a device';
  if (kind === 'folder') {
    return FOLDERS.has(name) ? 'programs load what lies in folders of this name' : null;
  }
  if (NAMES.has(name) || FORMS.some((form) => form.test(name))) {
    return 'tools execute or obey files of this name';
  }
  if (DOCUMENTS.has(name)) return null;
  const at = name.lastIndexOf('.');
  if (at === -1) return 'only documents and data are written, and it has no ending such as ".md"';
  const ending = name.slice(at + 1);
  return ENDINGS.has(ending)
    ? null
    : `only documents and data are written, such as .md, .txt, .csv, and .json, not ".${ending.slice(0, 40)}"`;
}

/**
 * Returns the name under which an attempt of `write_file` prepares a file, in the folder of its
 * target. Each attempt has its own name, because an earlier attempt that is presumed dead may still
 * be writing. The next attempt can compute the names of earlier ones and remove what a killed one
 * has left.
 */
export function temporaryName(
  { idempotencyKey, call }: Pick<ToolContext, 'idempotencyKey' | 'call'>,
  attempt: number,
): string {
  const id = createHash('sha256').update(`${idempotencyKey} ${call.id}`).digest('hex').slice(0, 16);
  return `.perdure-${id}-${attempt}.tmp`;
}

/** Returns whether a name is that of a prepared file, which listings hide. */
export function isTemporary(name: string): boolean {
  return name.startsWith('.perdure-') && name.endsWith('.tmp');
}
