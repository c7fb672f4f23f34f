import type { Effect } from '../core/definition/definition.js';

/** What a server says of a tool. It may be wrong, or lie. */
export interface ToolAnnotations {
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
}

/**
 * What a tool does to the world, as far as it is trusted. Unknown is `once`; only the author's word
 * makes it less, and a hint that contradicts the author makes it `once` again:
 *
 * | author  | hint                                          | effect  |
 * | ------- | --------------------------------------------- | ------- |
 * | nothing | any, `readOnlyHint: true` too                 | `once`  |
 * | `read`  | `readOnlyHint: false`, `destructiveHint: true`| `once`  |
 * | `read`  | any other, or none                            | `read`  |
 * | `keyed` | `idempotentHint: false`                       | `once`  |
 * | `keyed` | any other, or none                            | `keyed` |
 * | `once`  | any                                           | `once`  |
 */
export function toolEffect(author: Effect | undefined, hints: ToolAnnotations = {}): Effect {
  const { readOnlyHint, destructiveHint, idempotentHint } = hints;
  switch (author) {
    case 'read':
      return readOnlyHint === false || destructiveHint === true ? 'once' : 'read';
    case 'keyed':
      return idempotentHint === false ? 'once' : 'keyed';
    case 'once':
    case undefined:
      return 'once';
  }
}
