import { knownSecrets } from './known.js';
import { replaceSpans } from './redact.js';

/** Redacts a text that arrives in parts. */
export interface StreamRedactor {
  /**
   * Accepts the next part and returns the text that can be shown. Holds back an end that may start
   * a secret.
   */
  push(part: string): string;
  /** Returns the text that was held back. Call this after the last part. */
  end(): string;
  /** How many characters are held back. */
  readonly held: number;
}

/**
 * How many characters of a secret may be shown before it is recognized. Most words end like the
 * start of some secret, so without this, readers would wait for the last letters of most words.
 */
const SHOWN = 3;

/** Creates a redactor for one stream. */
export function createStreamRedactor(): StreamRedactor {
  /** The last characters shown, before redaction; a secret may have begun there. */
  let shown = '';
  let held = '';

  const show = (text: string, isWhole: boolean): string => {
    const matcher = knownSecrets();
    const spans = matcher.find(text);
    const open = isWhole ? text.length : matcher.openFrom(text);
    let cut = text.length - open <= SHOWN ? text.length : Math.max(open, shown.length);
    // The end of a complete secret may look like the start of another.
    cut = spans.find(({ from, to }) => from < cut && cut < to)?.to ?? cut;
    // A secret that is recognized, but may go on: its rest alone would not be recognized.
    const growing = spans.find(({ from, to }) => to === text.length && open <= from);
    if (growing !== undefined && !isWhole) cut = Math.max(growing.from, shown.length);
    const ready = spans.filter(
      (span) => (isWhole || span !== growing) && span.from < cut && span.to > shown.length,
    );
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
