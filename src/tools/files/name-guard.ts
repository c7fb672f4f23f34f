import { withoutTail } from '../../core/text/text.js';
import { ToolError } from '../errors.js';
import { type ConfinedPath, quote } from './confine.js';

import { globMatcher, whyNotWritten } from './names.js';

/** The rules of a `NameGuard`. */
interface NameRules {
  /** Patterns of paths that may be read although their names suggest secrets. */
  readonly allowRead: readonly string[];
  /** Patterns of paths that may be written although they are no documents or data. */
  readonly allowWrite: readonly string[];
  /** Patterns of paths that are neither read nor written, regardless of the other patterns. */
  readonly deny: readonly string[];
  /** Names of folders that are never written to. */
  readonly skip: readonly string[];
}

const OWN_CONFIG = 'perdure.config';

/** Decides by name which files the tools may read and write. */
export interface NameGuard {
  /** Whether the content at a path from the root may be read. */
  mayRead(relative: string): boolean;
  /** Throws a `ToolError` unless the place may be read. */
  refuseReading(place: ConfinedPath): void;
  /** Throws a `ToolError` unless the place may be written. */
  refuseWriting(place: ConfinedPath): void;
  /** Whether the options allow writing this path, so that it may be a program. */
  isAllowed(place: ConfinedPath): boolean;
}

/** Makes a guard. Throws an `Error` if a pattern has too many alternatives. */
export function nameGuard({ allowRead, allowWrite, deny, skip }: NameRules): NameGuard {
  const readable = allowRead.map(allowance);
  const writable = allowWrite.map(allowance);
  const isDenied = deny.map((pattern) => globMatcher(withoutTail(folded(pattern), /\//)));
  const skipped = new Set(skip.map((name) => plainName(name)));

  const denied = (relative: string): boolean =>
    // A pattern may have characters that a plain name has lost, such as a colon.
    [folded(relative), plain(relative).join('/')]
      .flatMap(prefixes)
      .some((path) => isDenied.some((matches) => matches(path)));
  const mayRead = (relative: string): boolean =>
    !denied(relative) &&
    (!isSecret(plain(relative)) || readable.some((allows) => allows(relative, relative)));

  const whyRefused = (relative: string): string | null => {
    const names = plain(relative);
    const given = relative.split('/').map((each) => wholeName(each));
    for (const [index, path] of prefixes(relative).entries()) {
      const name = names[index] ?? '';
      const isLast = index === names.length - 1;
      if (skipped.has(name)) return `nothing is written into ${quote(path)}`;
      const kind = isLast ? 'file' : 'folder';
      // Both count: a file system may drop what follows a colon, or keep it.
      const why = whyNotWritten(name, kind) ?? whyNotWritten(given[index] ?? '', kind);
      if (why !== null && !writable.some((allows) => allows(path, relative))) return why;
    }
    return null;
  };

  return {
    mayRead,
    isAllowed: ({ relative }) => writable.some((allows) => allows(relative, relative)),
    refuseReading({ requested, relative, lexical }) {
      if (mayRead(relative) && mayRead(lexical)) return;
      throw new ToolError(
        `${quote(requested)} is not read: files of this name hold secrets, such as keys and tokens. ` +
          'Continue without it, or ask a person, who can allow it (allowRead of fileTools, --allow-read)',
      );
    },
    refuseWriting({ requested, relative, lexical }) {
      if (denied(relative) || denied(lexical)) {
        throw new ToolError(`${quote(requested)} is not written: these tools must not change it`);
      }
      const why = whyRefused(relative) ?? whyRefused(lexical);
      if (why === null) return;
      throw new ToolError(
        `${quote(requested)} is not written: ${why}. Choose another name, or ask a person, who can ` +
          'allow it (allowWrite of fileTools, --allow-write)',
      );
    },
  };
}

/**
 * Makes the predicate for what one pattern allows: a name in the path of a file. A pattern without
 * a slash allows only that name, not the folder around it. Only a pattern with a leading dot allows
 * names that begin with one. A perdure configuration, which the next command executes, must be
 * named explicitly.
 */
function allowance(pattern: string): (path: string, whole: string) => boolean {
  const matches = globMatcher(pattern);
  const isPath = pattern.includes('/');
  const namesHidden = /(^|[/{,])\.[^./]/.test(pattern);
  return (path, whole) => {
    const name = plainName(path.slice(path.lastIndexOf('/') + 1));
    if (name.startsWith('.') && !namesHidden) return false;
    if (name.startsWith(OWN_CONFIG) && !pattern.includes(OWN_CONFIG)) return false;
    return matches(path) || (isPath && matches(whole));
  };
}

function plain(relative: string): string[] {
  return relative === '.' ? [] : relative.split('/').map(plainName);
}

/** Returns all prefixes of a path: for `a/b/c`, they are `a`, `a/b`, and `a/b/c`. */
function prefixes(relative: string): string[] {
  const names = relative.split('/');
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

/** Invisible characters: a name with them looks like the name without. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Control}\p{Format}]/gu;
/** Windows file systems cut these off the end of a name. */
const TRAILING = /[.\p{White_Space}]/u;

/** Removes the differences between letters that a file system may ignore. */
function folded(text: string): string {
  // Upper case first, because it merges letters that have several lowercase forms.
  return text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC');
}

/**
 * Returns the form of a name that is compared with guarded names. A file system that folds case,
 * normalizes, or ignores characters may treat `PACKAGE.JSON`, `package.json.`, and
 * `package\u200b.json` as one file.
 */
export function plainName(name: string): string {
  const whole = wholeName(name);
  // A colon begins the name of a stream within the file on NTFS; on a drive it follows the letter.
  const [file = ''] = whole.split(':');
  return whole.startsWith(':') ? whole : withoutTail(file.trim(), TRAILING);
}

/** Returns a plain name with everything that follows a colon in it. */
function wholeName(name: string): string {
  const composed = name.normalize('NFKC').replace(INVISIBLE, '');
  return withoutTail(folded(composed).trim(), TRAILING);
}

/** Folders that are never read, wherever they are: keys, tokens, and perdure's own state. */
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
  // The file with which a worker announces itself and its token, wherever PERDURE_HOME is.
  /^\d{1,10}-[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.json(\.draft)?$/,
];

/** Suffixes that editors and people append to the name of a copy. */
const COPY = /(~|[.-](bak|backup|old|orig|save|copy|tmp|sw[a-p]))$/;

/** Files below a repository's own folder that may hold addresses with passwords. */
const REPOSITORY = new Set(['config', 'config.worktree', 'credentials', 'fetch_head']);

/**
 * Returns whether a path, as plain names from the root, suggests a secret: keys, tokens, passwords,
 * or the state of perdure itself.
 */
function isSecret(names: readonly string[]): boolean {
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
