/** Folders of which nothing is read: keys, tokens, and perdure's own state, wherever they lie. */
const FOLDERS: ReadonlySet<string> = new Set(
  `.ssh .gnupg .aws .azure .kube .docker .gcloud .oci .perdure .password-store .terraform.d .m2 .vault
  .1password .bitwarden .mozilla .thunderbird`
    .trim()
    .split(/\s+/),
);

const NAMES: ReadonlySet<string> = new Set(
  `
  .npmrc .yarnrc .yarnrc.yml .pypirc .netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .s3cfg .boto .htpasswd
  .dockercfg .git-credentials .gitconfig .hgrc hgrc .vault-token .terraformrc terraform.rc .curlrc .wgetrc
  .claude.json auth.json oauth_creds.json kubeconfig application_default_credentials.json credentials.tfrc.json
  shadow gshadow ntuser.dat
  `
    .trim()
    .split(/\s+/),
);

const FORMS: readonly RegExp[] = [
  /^\.env|\.env$/,
  /^id_(rsa|dsa|ecdsa|ed25519)(?!.*\.pub$)/,
  /\.(pem|key|p8|p12|pfx|pkcs12|jks|keystore|bks|kdb|kdbx|ppk|agekey|ovpn|gpg|tfstate|tfvars)(\.json)?$/,
  /^\.?(credentials?|secrets?)(\.(json|ya?ml|toml|ini|env|txt|csv|conf|properties|xml|enc))?$/,
  /^(service[-_]?account|client[-_]secret).*\.json$/,
  /^\.[a-z_]*_?history$/,
  // As a worker announces itself, with its token, wherever PERDURE_HOME is.
  /^\d{1,10}-[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.json(\.draft)?$/,
];

/** What editors and people put behind the name of a file when they keep another copy of it. */
const COPY = /(~|[.-](bak|backup|old|orig|save|copy|tmp|sw[a-p]))$/;

/** Files below a repository's own folder that may hold addresses with passwords. */
const REPOSITORY = new Set(['config', 'config.worktree', 'credentials', 'fetch_head']);

/**
 * Whether a path, as plain names from the root, leads to what people keep secret by its name: keys,
 * tokens, passwords, or the state of perdure itself.
 */
export function isSecret(names: readonly string[]): boolean {
  const last = names.at(-1) ?? '';
  if (names.some((name) => FOLDERS.has(name))) return true;
  const original = last.replace(COPY, '');
  // An editor's own copy begins with a dot: `.id_rsa.swp`.
  const namesOfIt = original === last ? [last] : [last, original, original.replace(/^\./, '')];
  if (namesOfIt.some((name) => NAMES.has(name) || FORMS.some((form) => form.test(name))))
    return true;
  const isOfGit = names.some((name) => name === '.git' || name.endsWith('.git'));
  if (isOfGit && (REPOSITORY.has(original) || names.includes('logs'))) return true;
  // ~/.config/gh/hosts.yml, ~/.config/gcloud, ~/.config/git/credentials, ~/.subversion/auth
  const inConfig = names.indexOf('.config');
  return inConfig !== -1 && /^(gh|gcloud|git|hub|op|rclone|sops)$/.test(names[inConfig + 1] ?? '');
}
