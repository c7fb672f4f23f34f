import { isObject, parseJson, textField } from '../json.js';

/** Reads an error as a model would see it. */
export function errorIn(text: string): { readonly type: string; readonly message: string } {
  const value = parseText(text);
  const error = isObject(value) && isObject(value['error']) ? value['error'] : {};
  const message = textField(error, 'message');
  return { type: textField(error, 'type') || 'failed', message: message || text };
}

function parseText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
