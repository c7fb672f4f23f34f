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
