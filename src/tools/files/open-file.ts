import path from 'node:path';
import { type Stats, constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { ToolError } from '../errors.js';
import { withoutTail } from '../../core/text/text.js';
import { type ConfinedPath, type OpenFolders, fileError, quote, withFolders } from './confine.js';
import { globMatcher, whyNotWritten } from './names.js';

/** Windows lacks both flags. */
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const NO_WAIT = constants.O_NONBLOCK ?? 0;

/**
 * Opens an ordinary file, passes it to `use`, and closes it. Every folder on the way is opened
 * without following links, so a link that replaces one leads nowhere.
 *
 * Devices, FIFOs, and sockets are refused before they are opened, since opening a FIFO without a
 * writer never returns, and again afterwards, since the file may have been replaced meanwhile.
 * Throws a `ToolError` in these cases.
 */
export async function withFile<Result>(
  place: ConfinedPath,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  return await withFolders(
    place.root,
    async (folders) => await withFileIn(folders, place, use),
  ).catch((error: unknown) => {
    throw fileError(place.requested, error);
  });
}

/** Does the same as `withFile` for one of several files, with folders that are already open. */
export async function withFileIn<Result>(
  folders: OpenFolders,
  place: Pick<ConfinedPath, 'requested' | 'relative'>,
  use: (handle: FileHandle, sizeBytes: number) => Promise<Result>,
): Promise<Result> {
  try {
    const folder = await folders.open(path.posix.dirname(place.relative));
    const at = folder.at(path.posix.basename(place.relative));
    const before = await lstat(at);
    refuseOther(place.requested, before);
    const handle = await open(at, constants.O_RDONLY | NO_FOLLOW | NO_WAIT);
    try {
      const stats = await handle.stat();
      refuseOther(place.requested, stats);
      await folder.verify(path.posix.basename(place.relative), await handle.stat({ bigint: true }));
      return await use(handle, stats.size);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(place.requested, error);
  }
}

/** Throws a `ToolError` that names the kind of file unless it is an ordinary file. */
export function refuseOther(requested: string, stats: Stats): void {
  if (stats.isFile()) return;
  if (stats.isDirectory())
    throw new ToolError(`${quote(requested)} is a folder; name a file in it`);
  throw new ToolError(
    `${quote(requested)} is ${kindOf(stats)}, not an ordinary file; these tools do not open it`,
  );
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a FIFO';
  if (stats.isSocket()) return 'a socket';
  if (stats.isSymbolicLink()) return 'a symbolic link';
  return 'a device';
}

const CHUNK_BYTES = 64 * 1024;
const SNIFF_BYTES = 8 * 1024;

/** Reads a file in chunks from its start; each chunk is valid until the next one is read. */
export async function* chunksOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let position = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead, buffer } = await handle.read(
      Buffer.allocUnsafe(CHUNK_BYTES),
      0,
      CHUNK_BYTES,
      position,
    );
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Returns whether the first 8 KiB of a file contain a NUL or are not UTF-8. */
export function isBinary(start: Buffer): boolean {
  const sniffed = start.subarray(0, SNIFF_BYTES);
  if (sniffed.includes(0)) return true;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(sniffed, { stream: true });
    return false;
  } catch {
    return true;
  }
}

/** Formats a size for people and models: `412 bytes`, `3.1 kB`, `12 MB`. */
export function readableSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const exponent = Math.min(Math.floor(Math.log10(bytes) / 3), units.length);
  const value = bytes / 1_000 ** exponent;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[exponent - 1]}`;
}

/** The settings that all file tools of one root share. */
export interface FileToolSettings {
  /** Absolute path of the folder that the tools are confined to. */
  readonly root: string;
  /** The size in bytes of the largest file that is searched, counted to its end, or written. */
  readonly maxFileBytes: number;
  /** Names of folders that are entered only if `path` names them, and never written to. */
  readonly skip: ReadonlySet<string>;
  readonly guard: NameGuard;
}

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
interface NameGuard {
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
      .some((place) => isDenied.some((matches) => matches(place)));
  const mayRead = (relative: string): boolean =>
    !denied(relative) &&
    (!isSecret(plain(relative)) || readable.some((allows) => allows(relative, relative)));

  const whyRefused = (relative: string): string | null => {
    const names = plain(relative);
    const given = relative.split('/').map((each) => wholeName(each));
    for (const [index, place] of prefixes(relative).entries()) {
      const name = names[index] ?? '';
      const isLast = index === names.length - 1;
      if (skipped.has(name)) return `nothing is written into ${quote(place)}`;
      const kind = isLast ? 'file' : 'folder';
      // Both count: a file system may drop what follows a colon, or keep it.
      const why = whyNotWritten(name, kind) ?? whyNotWritten(given[index] ?? '', kind);
      if (why !== null && !writable.some((allows) => allows(place, relative))) return why;
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
  return (place, whole) => {
    const name = plainName(place.slice(place.lastIndexOf('/') + 1));
    if (name.startsWith('.') && !namesHidden) return false;
    if (name.startsWith(OWN_CONFIG) && !pattern.includes(OWN_CONFIG)) return false;
    return matches(place) || (isPath && matches(whole));
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
