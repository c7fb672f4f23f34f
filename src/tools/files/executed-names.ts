/**
 * Names of files that package managers, builds, editors, code hosts, and interpreters execute or
 * obey.
 */
const NAMES: ReadonlySet<string> = new Set(
  `
  package.json package.yaml package.json5 package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock
  bun.lockb bunfig.toml deno.json deno.jsonc deno.lock jsr.json lerna.json nx.json turbo.json rush.json
  workspace.json project.json angular.json nest-cli.json nodemon.json knip.json renovate.json components.json
  bower.json babel.json ormconfig.json import_map.json mcp.json
  makefile gnumakefile bsdmakefile cmakelists.txt cmakepresets.json meson.build meson_options.txt sconstruct
  sconscript build.bazel workspace workspace.bazel module.bazel build configure configure.ac configure.in
  justfile taskfile.yml taskfile.yaml rakefile gemfile gemfile.lock guardfile capfile thorfile vagrantfile
  brewfile podfile podfile.lock fastfile appfile procfile tiltfile earthfile jakefile cakefile berksfile
  cheffile puppetfile cartfile steepfile snakefile wscript waf
  docker-bake.hcl docker-bake.json skaffold.yaml helmfile.yaml kustomization.yaml chart.yaml
  bitbucket-pipelines.yml appveyor.yml cloudbuild.yaml buildspec.yml circle.yml wercker.yml codemagic.yaml
  netlify.toml vercel.json now.json fly.toml wrangler.toml wrangler.json wrangler.jsonc firebase.json app.yaml
  app.json railway.json railway.toml render.yaml heroku.yml action.yml action.yaml lefthook.yml lefthook.yaml
  lefthook.toml mkdocs.yml book.toml mise.toml devbox.json typedoc.json tslint.json rebar.config dune shard.yml
  setup.cfg pyproject.toml tox.ini pytest.ini mypy.ini pipfile pipfile.lock poetry.lock uv.lock pdm.lock
  environment.yml environment.yaml pixi.toml hatch.toml manifest.in ansible.cfg
  cargo.toml cargo.lock rust-toolchain rust-toolchain.toml go.mod go.sum go.work go.work.sum
  pom.xml build.xml settings.xml gradlew mvnw gradle.properties gradle-wrapper.properties
  maven-wrapper.properties nuget.config global.json packages.config
  composer.json composer.lock artisan mix.lock stack.yaml cabal.project pubspec.yaml pubspec.lock
  package.resolved flake.lock conanfile.txt vcpkg.json
  crontab autorun.inf desktop.ini _vimrc _gvimrc _netrc _exrc devcontainer.json launch.json tasks.json
  head
  `
    .trim()
    .split(/\s+/),
);

/** Forms of such names with variable parts. */
const FORMS: readonly RegExp[] = [
  // perdure.config.*, vite.config.*, vitest.live.config.*, karma.conf.*; tsconfig.build.json.
  /(^|[.-])(config|conf|workspace|setup|rc)\.([cm]?[jt]sx?|jsonc?|json5|ya?ml|toml)$/,
  /^(ts|js)config([.-].*)?\.jsonc?$/,
  /^(docker-)?compose([.-].*)?\.ya?ml$/,
  /^(dockerfile|containerfile|jenkinsfile|procfile|makefile|justfile|dangerfile)([.-].*)?$/,
  /\.(dockerfile|containerfile|jenkinsfile|makefile|justfile)$/,
  /^(agents?|claude|gemini|copilot-instructions)([.-].*)?\.md$/,
  /^azure-pipelines.*\.ya?ml$/,
  /^serverless([.-].*)?\.(json|ya?ml|toml)$/,
  /^(requirements|constraints).*\.(txt|in)$/,
  /(^|\.)gitlab-ci\.ya?ml$/,
  /\.lockb?$/,
];

/** Extensions of code, scripts, programs, and project files that a click or a build opens. */
const ENDINGS: ReadonlySet<string> = new Set(
  `
  ts mts cts tsx js mjs cjs jsx vue svelte astro coffee node wasm
  py pyw pyi pyx pyc pyo pth ipynb rb erb rake gemspec ru pl pm t php phtml phar lua rockspec tcl r rmd jl
  go rs c h cc cpp cxx hh hpp hxx m mm swift java kt kts scala sc groovy gradle clj cljs cljc edn ex exs erl hrl
  hs lhs cabal ml mli fs fsx fsi cs csx vb dart zig nim v d pas ada cr elm el lisp scm rkt sql awk sed vim
  sh bash zsh fish ksh csh tcsh command bat cmd ps1 psm1 psd1 ps1xml vbs vbe wsf wsh hta scr com exe msi dll so
  dylib jar war ear class app apk appimage deb rpm run bin out scpt applescript workflow action
  mk mak cmake bzl bazel nix tf tfvars hcl bicep jsonnet cue rego pp sls
  csproj fsproj vbproj vcxproj sln slnx props targets pbxproj xcconfig xcscheme iml code-workspace
  sublime-project sublime-build desktop service socket timer path mount plist reg lnk url webloc inf
  `
    .trim()
    .split(/\s+/),
);

/** Folders whose content programs execute or load without naming it. */
const FOLDERS: ReadonlySet<string> = new Set(
  'node_modules bower_components site-packages dist-packages __pycache__ venv hooks githooks git-hooks'.split(
    ' ',
  ),
);

/** A short name on old Windows file systems, such as `PACKAG~1.JSO`. */
const SHORT_NAME = /^[^.~]{1,7}~\d{1,4}(\.[^.]{0,3})?$/;

/**
 * Returns why a tool must not write a file of this name for a model, or null if it may. `name` is a
 * plain name. Names that some program executes, loads, or obeys are refused: writing such a file
 * controls what happens on this machine.
 */
export function executedAs(name: string, kind: 'file' | 'folder'): string | null {
  if (name === '') return 'its name has no visible characters';
  if (name.startsWith('.')) return 'tools read their settings from names that begin with a dot';
  if (SHORT_NAME.test(name)) return 'it may be the short name of another file';
  if (kind === 'folder') {
    return FOLDERS.has(name) ? 'programs load what lies in folders of this name' : null;
  }
  if (NAMES.has(name) || FORMS.some((form) => form.test(name))) {
    return 'tools execute or obey files of this name';
  }
  const ending = name.slice(name.lastIndexOf('.') + 1);
  return name.includes('.') && ENDINGS.has(ending)
    ? `".${ending}" is the ending of code or of a program`
    : null;
}
