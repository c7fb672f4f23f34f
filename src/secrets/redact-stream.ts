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
 * How many characters that were shown are looked at again: the first few of a secret may be among
 * them, in an encoding that needs many characters for each.
 */
const LOOK_BACK = 128;

/** Creates a redactor for one stream. */
export function createStreamRedactor(): StreamRedactor {
  /** The last characters shown, before redaction. */
  let shown = '';
  let held = '';

  const show = (text: string, isWhole: boolean): string => {
    const matcher = knownSecrets();
    const spans = matcher.find(text);
    const open = isWhole ? text.length : matcher.openFrom(text);
    // A secret that begins in the open end may go on: its rest alone would not be recognized.
    const complete = spans.filter((span) => isWhole || span.from < open);
    // The end of a complete secret may look like the start of another.
    const cut = complete.reduce((end, { to }) => Math.max(end, to), Math.max(open, shown.length));
    const ready = complete.filter((span) => span.to > shown.length);
    const result = replaceSpans(text, ready, { from: shown.length, to: cut });
    held = text.slice(cut);
    shown = text.slice(Math.max(ready.at(-1)?.to ?? 0, cut - LOOK_BACK), cut);
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
