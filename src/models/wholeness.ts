/** Whether a text that comes in pieces is a JSON object from end to end. */
export interface Wholeness {
  /** Takes the next piece; it is read only when somebody asks. */
  add(piece: string): void;
  /**
   * Whether the brackets of an object that begins the text are closed again, and nothing but white space
   * follows. White space leaves it so, and anything else ends it for good: the text has to be parsed once.
   */
  isBalanced(): boolean;
}

const SPACE = new Set([' ', '\t', '\n', '\r']);

/** Reads every character once, however often it is asked. */
export function wholeness(): Wholeness {
  let unread: string[] = [];
  let depth = 0;
  let state: 'before' | 'inside' | 'text' | 'escape' | 'behind' | 'broken' = 'before';

  const read = (character: string): void => {
    switch (state) {
      case 'escape':
        state = 'text';
        return;
      case 'text':
        if (character === '\\') state = 'escape';
        else if (character === '"') state = 'inside';
        return;
      case 'inside':
        if (character === '"') state = 'text';
        else if (character === '{' || character === '[') depth += 1;
        else if (character === '}' || character === ']') depth -= 1;
        if (depth === 0) state = 'behind';
        return;
      case 'before':
        depth = character === '{' ? 1 : 0;
        if (!SPACE.has(character)) state = depth === 1 ? 'inside' : 'broken';
        return;
      case 'behind':
        if (!SPACE.has(character)) state = 'broken';
        return;
      case 'broken':
    }
  };

  return {
    add(piece) {
      if (piece !== '' && state !== 'broken') unread.push(piece);
    },
    isBalanced() {
      for (const piece of unread) {
        for (let at = 0; at < piece.length; at += 1) read(piece.charAt(at));
      }
      unread = [];
      return state === 'behind';
    },
  };
}
