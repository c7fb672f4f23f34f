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
