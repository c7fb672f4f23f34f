import { parsePlaceholders } from './placeholders.js';

/**
 * The author's versions of the texts that perdure writes to an agent's model. They are pinned with
 * the agent. Placeholders are written as in templates: `{{problem}}`.
 */
export interface AgentTexts {
  /**
   * Asks for a corrected answer; only for agents with `output`. It must contain `{{problem}}`, with
   * at least 12 characters before the first placeholder; `{{attempt}}` and `{{attempts}}` are
   * numbers.
   */
  readonly repair?: string;
  /** Asks for the last answer when a limit is reached; `{{reason}}` is that limit. */
  readonly closing?: string;
  /** Demands a call from a model whose server does not accept `toolChoice: 'required'`. */
  readonly demandCall?: string;
}

/** The placeholders that each text may have. */
const PLACEHOLDERS: Readonly<Record<keyof AgentTexts, readonly string[]>> = {
  repair: ['problem', 'attempt', 'attempts'],
  closing: ['reason'],
  demandCall: [],
};

/**
 * Minimum characters before the first placeholder, so people's messages rarely begin like a repair
 * request.
 */
const MIN_PREFIX_CHARACTERS = 12;

/** Returns the problem with an author's text, and the fix; null if there is none. */
export function authorTextProblem(name: keyof AgentTexts, text: string): string | null {
  if (text.trim() === '') return 'expected a text, got only blanks; omit it to use the default';
  const known = PLACEHOLDERS[name];
  try {
    const parts = parsePlaceholders(text);
    const used = parts.flatMap((part) => (part.type === 'argument' ? [part.name] : []));
    const unknown = used.find((one) => !known.includes(one));
    if (unknown !== undefined) {
      const possible = known.map((one) => `{{${one}}}`).join(', ');
      return `expected ${known.length === 0 ? 'no placeholder' : `no placeholder but ${possible}`}`;
    }
    if (name !== 'repair') return null;
    if (!used.includes('problem')) {
      return 'expected the placeholder {{problem}}, else the model does not learn what is wrong; add it';
    }
    const [first] = parts;
    return first?.type === 'text' && first.text.trim().length >= MIN_PREFIX_CHARACTERS
      ? null
      : `expected at least ${MIN_PREFIX_CHARACTERS} characters before the first placeholder, by which repairs are recognized`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns a text with its placeholders filled in. Placeholders within values are not expanded. */
export function fillText(text: string, values: Readonly<Record<string, string | number>>): string {
  return parsePlaceholders(text)
    .map((part) => (part.type === 'text' ? part.text : String(values[part.name] ?? '')))
    .join('');
}

/** Returns the beginning of a text, up to its first placeholder. */
export function beginOf(text: string): string {
  const [first] = parsePlaceholders(text);
  return first?.type === 'text' ? first.text : '';
}
