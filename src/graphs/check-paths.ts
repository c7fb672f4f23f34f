import { InputError } from '../core/errors.js';
import { isObject } from '../core/json.js';
import { unknownField, type StateFields } from './state-schema.js';

/** The key that holds paths: `path` in conditions, `$path` in computed values. */
interface PathKey {
  readonly fields: StateFields;
  readonly key: 'path' | '$path';
}

/**
 * Throws an `InputError` if a condition or a computed value names a field that the state does not
 * have. For a typed state, the compiler reports the same fault.
 */
export function checkPaths(where: string, paths: PathKey, value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) checkPaths(where, paths, item);
    return;
  }
  if (!isObject(value)) return;
  const path = Object.hasOwn(value, paths.key) ? value[paths.key] : undefined;
  if (typeof path !== 'string') {
    for (const inner of Object.values(value)) checkPaths(where, paths, inner);
    return;
  }
  const [field = ''] = path.split('.');
  if (path === '' || paths.fields.has(field)) return;
  throw new InputError(unknownField(`${where} reads`, paths.fields, field));
}
