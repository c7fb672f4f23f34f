/** The brackets of a text that is only partly JSON. */
export interface BracketPairs {
  /** For each opening bracket that has one, where its closing bracket stands. */
  readonly closeOf: ReadonlyMap<number, number>;
  /** The last `}` and the last `]` that close nothing; -1 where there is none. */
  readonly lastStray: { readonly '}': number; readonly ']': number };
}

const OPENER: Readonly<Record<string, string>> = { '}': '{', ']': '[' };

/**
 * Pairs the brackets of any text, prose included: a bracket that does not fit is passed over, and
 * what stands in double quotes on one line does not count. Takes linear time.
 */
export function bracketPairs(text: string): BracketPairs {
  const closeOf = new Map<number, number>();
  const open: { readonly kind: string; readonly at: number }[] = [];
  const waiting: Record<string, number> = { '{': 0, '[': 0 };
  const lastStray = { '}': -1, ']': -1 };
  const places = /[{}[\]"]/g;
  const quotes = quoteReader(text);
  for (let found = places.exec(text); found; found = places.exec(text)) {
    const at = found.index;
    const character = found[0];
    const opener = OPENER[character];
    if (character === '"') {
      places.lastIndex = quotes(at);
    } else if (opener === undefined) {
      open.push({ kind: character, at });
      waiting[character] = (waiting[character] ?? 0) + 1;
    } else if (waiting[opener] === 0) {
      lastStray[character === '}' ? '}' : ']'] = at;
    } else {
      for (let last = open.pop(); last; last = open.pop()) {
        waiting[last.kind] = (waiting[last.kind] ?? 0) - 1;
        if (last.kind !== opener) continue;
        closeOf.set(last.at, at);
        break;
      }
    }
  }
  return { closeOf, lastStray };
}

/** Where to read on behind a quote: behind its partner on the same line, else right behind itself. */
function quoteReader(text: string): (at: number) => number {
  let lineEnd = -1;
  let unpaired = false;
  return (at) => {
    if (at > lineEnd) {
      const lineBreak = text.indexOf('\n', at);
      lineEnd = lineBreak < 0 ? text.length : lineBreak;
      unpaired = false;
    }
    if (unpaired) return at + 1;
    let close = text.indexOf('"', at + 1);
    while (close >= 0 && isEscaped(text, close)) close = text.indexOf('"', close + 1);
    unpaired = close < 0 || close > lineEnd;
    return unpaired ? at + 1 : close + 1;
  };
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text[before] === '\\') before -= 1;
  return (at - before) % 2 === 0;
}
