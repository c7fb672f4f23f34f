import { knownSecrets } from './known.js';
import { replaceSpans } from './redact.js';

/** Redacts a text that comes in parts. */
export interface StreamRedactor {
  /** Takes the next part and returns what can be shown by now. An end that may begin a secret is kept back. */
  push(part: string): string;
  /** Returns what was kept back: nothing more will come. */
  end(): string;
  /** How many characters are kept back. */
  readonly held: number;
}

/**
 * So many characters of a secret may be shown before it is known to be one. Most words end like the
 * beginning of some secret; readers would wait for their last letters.
 */
const SHOWN = 3;

export function createStreamRedactor(): StreamRedactor {
  /** What was shown last, as it came; a secret may have begun there. */
  let shown = '';
  let held = '';

  const show = (text: string, isWhole: boolean): string => {
    const matcher = knownSecrets();
    const spans = matcher.find(text);
    const open = isWhole ? text.length : matcher.openFrom(text);
    let cut = text.length - open <= SHOWN ? text.length : Math.max(open, shown.length);
    // The end of a whole secret may look like the beginning of another.
    cut = spans.find(({ from, to }) => from < cut && cut < to)?.to ?? cut;
    const ready = spans.filter(({ from, to }) => from < cut && to > shown.length);
    const result = replaceSpans(text, ready, { from: shown.length, to: cut });
    held = text.slice(cut);
    shown = text.slice(Math.max(ready.at(-1)?.to ?? 0, cut - SHOWN), cut);
    return result;
  };

  return {
    push: (part) => show(shown + held + part, false),
    end: () => show(shown + held, true),
    get held() {
      return held.length;
    },
  };
}
