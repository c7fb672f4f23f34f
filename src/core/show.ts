/** A value as it may stand in an error message: JSON, cut short. */
export function show(value: unknown): string {
  const text = jsonText(value) ?? typeof value;
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}

/** Undefined for what is no JSON. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
