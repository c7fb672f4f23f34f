import { fieldsOf } from './composed.js';

/**
 * A text that must not leave the process, and its environment variable; an empty name if it has
 * none.
 */
export interface Secret {
  readonly name: string;
  readonly value: string;
}

/** Shorter lines of a multi-line secret appear in other texts as well. */
const MIN_LINE_CHARACTERS = 16;
const USER_INFO = /:\/\/([^\s/?#"'<>]*)@/g;

/**
 * Returns all secret texts of a variable's value: the value itself if `isSecret`, each line of a
 * key with several lines, the secret fields of a JSON object or of pairs, and the user info of
 * URLs.
 */
export function partsOfValue(
  value: string,
  how: { readonly isSecret: boolean; readonly isSecretName: (name: string) => boolean },
): readonly string[] {
  const parts = new Set(userInfo(value));
  if (how.isSecret) {
    parts.add(value.trim());
    const composed = fieldsOf(value);
    if (composed !== null) {
      const secret = composed.filter(([name]) => how.isSecretName(name));
      return [...parts, ...secret.flatMap(([, text]) => partsOfValue(text, how))];
    }
    // Keys with several lines often have their line breaks written as \n.
    const lines = value
      .trim()
      .replaceAll(/\\r|\r/g, '')
      .replaceAll('\\n', '\n');
    if (lines.includes('\n')) {
      parts.add(lines);
      for (const line of lines.split('\n')) if (isSecretLine(line.trim())) parts.add(line.trim());
    }
  }
  parts.delete('');
  return [...parts];
}

/** Returns whether a line is secret; the armor of a PEM file is not. */
function isSecretLine(line: string): boolean {
  return line.length >= MIN_LINE_CHARACTERS && !line.startsWith('-----');
}

/** Returns the user info of the URLs in a text, and the password alone, as written and decoded. */
function userInfo(text: string): readonly string[] {
  if (!text.includes('://')) return [];
  return [...text.matchAll(USER_INFO)].flatMap(([, info = '']) => {
    const colon = info.indexOf(':');
    // A name without a password may be a token (`https://TOKEN@host`), or `git`.
    if (colon === -1) return info.length < 16 ? [] : [info, decoded(info)];
    const password = info.slice(colon + 1);
    return password === '' ? [] : [info, decoded(info), password, decoded(password)];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
