import { ToolError } from '../tool-error.js';
import type { Place } from './confine.js';
import { executedAs } from './executed-names.js';
import { quote } from './fs-error.js';
import { globMatcher } from './glob.js';
import { folded, plainName } from './plain-name.js';
import { isSecret } from './secret-names.js';

export interface NameRules {
  /** Patterns of paths that may be read although their names say that they hold secrets. */
  readonly allowRead: readonly string[];
  /** Patterns of paths that may be written although tools execute files of their names. */
  readonly allowWrite: readonly string[];
  /** Patterns of paths that are neither read nor written, whatever is allowed. */
  readonly deny: readonly string[];
  /** Names of folders that nothing is written into. */
  readonly skip: readonly string[];
}

const OWN_CONFIG = 'perdure.config';

/** Decides by the names of files what their tools leave alone. */
export interface NameGuard {
  /** Whether the content at a path from the root may be read. */
  mayRead(relative: string): boolean;
  /** Throws a `ToolError` unless the place may be read. */
  refuseReading(place: Place): void;
  /** Throws a `ToolError` unless the place may be written. */
  refuseWriting(place: Place): void;
  /** Whether a person has allowed to write this path, so that it may be a program. */
  isAllowed(place: Place): boolean;
}

/** Throws when a pattern has too many alternatives. */
export function nameGuard({ allowRead, allowWrite, deny, skip }: NameRules): NameGuard {
  const readable = allowRead.map(allowance);
  const writable = allowWrite.map(allowance);
  const isDenied = deny.map((pattern) => globMatcher(folded(pattern).replace(/\/+$/, '')));
  const skipped = new Set(skip.map((name) => plainName(name)));

  const denied = (relative: string): boolean =>
    // A pattern may hold what a plain name has lost, such as a colon.
    [folded(relative), plain(relative).join('/')]
      .flatMap(prefixes)
      .some((path) => isDenied.some((matches) => matches(path)));
  const mayRead = (relative: string): boolean =>
    !denied(relative) &&
    (!isSecret(plain(relative)) || readable.some((allows) => allows(relative, relative)));

  const whyNotWritten = (relative: string): string | null => {
    const names = plain(relative);
    for (const [index, path] of prefixes(relative).entries()) {
      const name = names[index] ?? '';
      const isLast = index === names.length - 1;
      if (skipped.has(name)) return `nothing is written into ${quote(path)}`;
      const why = executedAs(name, isLast ? 'file' : 'folder');
      if (why !== null && !writable.some((allows) => allows(path, relative))) return why;
    }
    return null;
  };

  return {
    mayRead,
    isAllowed: ({ relative }) => writable.some((allows) => allows(relative, relative)),
    refuseReading({ asked, relative, lexical }) {
      if (mayRead(relative) && mayRead(lexical)) return;
      throw new ToolError(
        `${quote(asked)} is not read: files of this name hold secrets, such as keys and tokens. Do ` +
          'without it, or ask a person, who can allow it (allowRead of fileTools, --allow-read)',
      );
    },
    refuseWriting({ asked, relative, lexical }) {
      if (denied(relative) || denied(lexical)) {
        throw new ToolError(`${quote(asked)} is not written: these tools leave it alone`);
      }
      const why = whyNotWritten(relative) ?? whyNotWritten(lexical);
      if (why === null) return;
      throw new ToolError(
        `${quote(asked)} is not written: ${why}. Choose another name, or ask a person, who can ` +
          'allow it (allowWrite of fileTools, --allow-write)',
      );
    },
  };
}

/**
 * What one pattern allows: a name on the way to a file. A pattern without a slash allows that name
 * alone, not the folder around it; only a pattern that writes a dot allows names that begin with one;
 * and a configuration of perdure, which the next command executes, has to be named.
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

/** `a/b/c` → `a`, `a/b`, `a/b/c`. */
function prefixes(relative: string): string[] {
  const names = relative.split('/');
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}
