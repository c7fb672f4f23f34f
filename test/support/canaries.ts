import { generateKeyPairSync } from 'node:crypto';

/**
 * Secrets that no payload, failure, log, or file of a test may contain, by the variables that hold
 * them.
 */
export const CANARIES: Readonly<Record<string, string>> = {
  CANARY_API_KEY: 'sk-proj-cnry7Q2vT9xLm4KdZr8WbYpE5sUfHj3N',
  CANARY_SHORT_TOKEN: 'cnry-9fT2',
  CANARY_GITHUB_PAT: 'ghp_cnryA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5',
  CANARY_DATABASE_URL: 'postgres://app:cnry%21Pw7-kq@db.internal:5432/app',
  CANARY_SENTRY_DSN: 'https://cnry3e5a7b9c1d2f4a6b@o1.ingest.example/77',
  CANARY_DB_PASSWORD: 'cnry p@ss/w+rd=&"quoted"\\slash',
  CANARY_UMLAUT_SECRET: 'cnry-gehëimnis-ключ-秘密-77',
  CANARY_PRIVATE_KEY: generateKeyPairSync('ed25519').privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string,
  CANARY_AUTH: 'Basic Y25yeS11c2VyOmNucnktcGFzcy04ODEy',
  CANARY_SERVICE_CREDENTIALS: JSON.stringify({
    type: 'robot',
    client_secret: 'cnry-json-5c4b3a291807',
  }),
  CANARY_WEBHOOK_SECRET: 'whsec_cnryMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  CANARY_LISTED: 'cnry-listed-value-42-a1b2',
};

/** Variables in an environment that are not secret. */
export const CANARY_NAMES: readonly string[] = ['CANARY_LISTED'];

/** The secret texts of a canary, and the length from which a prefix counts as one. */
function secretsIn(name: string, value: string): readonly { text: string; least: number }[] {
  const whole = (text: string): { text: string; least: number } => ({ text, least: text.length });
  switch (name) {
    case 'CANARY_API_KEY':
      return [{ text: value, least: 'sk-proj-'.length + 12 }];
    case 'CANARY_GITHUB_PAT':
      return [{ text: value, least: 'ghp_'.length + 12 }];
    case 'CANARY_WEBHOOK_SECRET':
      return [{ text: value, least: 'whsec_'.length + 12 }];
    case 'CANARY_DATABASE_URL':
      return [whole('app:cnry%21Pw7-kq'), whole('cnry%21Pw7-kq'), whole('cnry!Pw7-kq')];
    case 'CANARY_SENTRY_DSN':
      return [{ text: 'cnry3e5a7b9c1d2f4a6b', least: 12 }];
    case 'CANARY_AUTH':
      return [{ text: value, least: 'Basic '.length + 12 }];
    case 'CANARY_PRIVATE_KEY':
      return [{ text: value.split('\n')[1] ?? '', least: 28 }];
    case 'CANARY_SERVICE_CREDENTIALS':
      return [{ text: 'cnry-json-5c4b3a291807', least: 12 }];
    default:
      return [{ text: value, least: Math.min(value.length, 12) }];
  }
}

/**
 * Every form in which a program may write a text. Deliberately independent of the product's code.
 */
export function formsOf(text: string): Readonly<Record<string, string>> {
  const base64 = (before: string, after: string): string => {
    const bytes = Buffer.from(before + text + after);
    return bytes.toString('base64');
  };
  return {
    plain: text,
    json: JSON.stringify({ said: text }),
    'json in json': JSON.stringify({ body: JSON.stringify({ said: text }) }),
    url: `https://host/?q=${encodeURIComponent(text)}&x=1`,
    form: new URLSearchParams({ q: text }).toString(),
    hex: Buffer.from(text).toString('hex'),
    HEX: Buffer.from(text).toString('hex').toUpperCase(),
    base64: Buffer.from(text).toString('base64'),
    'base64 for URLs': Buffer.from(text).toString('base64url'),
    'Basic user': `Basic ${base64('user:', '')}`,
    'Basic me': `Basic ${base64('me:', '\n')}`,
    'Basic joe': `Basic ${base64('joe1:', 'z')}`,
    'base64 for URLs within': Buffer.from(`x${text}y`).toString('base64url'),
  };
}

/** The encodings of a text in which characters or bytes are written apart. */
export function spreadFormsOf(text: string): Readonly<Record<string, string>> {
  const bytes = Buffer.from(text);
  const wide = Buffer.from(text, 'utf16le');
  const pairs = [...bytes].map((byte) => byte.toString(16).padStart(2, '0'));
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  const points = Array.from(text, (mark) => mark.codePointAt(0) ?? 0);
  const lines = (encoded: string, width: number, end: string): string =>
    (encoded.match(new RegExp(`.{1,${width}}`, 'g')) ?? []).join(end);
  const base64 = bytes.toString('base64');
  const unicode = units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
  const percent = pairs.map((pair) => `%${pair}`).join('');
  const hex = pairs.join('');
  return {
    'base64 in lines of 64': lines(base64, 64, '\n'),
    'base64 in lines of 76': lines(Buffer.from(`abcd: ${text}`).toString('base64'), 76, '\r\n'),
    'base64 in lines of 19': lines(base64, 19, '\n  '),
    'base64 in lines, as JSON': JSON.stringify(lines(base64, 20, '\n')),
    'base64 in lines, as JSON in JSON': JSON.stringify(JSON.stringify(lines(base64, 20, '\r\n'))),
    'base64 in groups': lines(base64, 4, ' '),
    'base64 in a URL': encodeURIComponent(base64),
    'base64 for URLs in lines': lines(Buffer.from(`z${text}`).toString('base64url'), 16, '\n'),
    'base64 of UTF-16': wide.toString('base64'),
    'hex with colons': pairs.join(':'),
    'HEX with colons': pairs.join(':').toUpperCase(),
    'hex with blanks': pairs.join(' '),
    'hex with dashes': pairs.join('-'),
    'hex with 0x': pairs.map((pair) => `0x${pair}`).join(', '),
    'hex with 0x and no blanks': pairs.map((pair) => `0x${pair}`).join(','),
    'hex with \\x': pairs.map((pair) => `\\x${pair}`).join(''),
    'hex with \\x as JSON': JSON.stringify(pairs.map((pair) => `\\x${pair}`).join('')),
    'hex in lines': lines(pairs.join(' '), 48, '\n'),
    'hex in either case': hex.replaceAll(/[a-f]/g, (mark, at: number) =>
      at % 3 === 0 ? mark.toUpperCase() : mark,
    ),
    'a Buffer shown': `<Buffer ${pairs.join(' ')}>`,
    'hex of UTF-16': wide.toString('hex'),
    bytes: JSON.stringify([...bytes]),
    'bytes with blanks': `[ ${[...bytes].join(', ')} ]`,
    'bytes indented': JSON.stringify({ data: [...bytes] }, null, 2),
    'a Buffer as JSON': JSON.stringify(bytes),
    'a Uint8Array as JSON': JSON.stringify(new Uint8Array(bytes)),
    'a Buffer as JSON in JSON': JSON.stringify(JSON.stringify(new Uint8Array(bytes))),
    'bytes of UTF-16': JSON.stringify([...wide]),
    'codes of characters': JSON.stringify(units),
    'UTF-16': wide.toString('latin1'),
    'UTF-16 as JSON': JSON.stringify(wide.toString('latin1')),
    'UTF-16 with the high byte first': Buffer.from(wide).swap16().toString('latin1'),
    'unicode escapes': unicode,
    'UNICODE escapes': unicode.replaceAll(/[a-f]/g, (mark) => mark.toUpperCase()),
    'unicode escapes in JSON': JSON.stringify(unicode),
    'escapes of code points': points.map((point) => `\\u{${point.toString(16)}}`).join(''),
    entities: points.map((point) => `&#${point};`).join(''),
    'hex entities': points.map((point) => `&#x${point.toString(16)};`).join(''),
    'padded entities': points.map((point) => `&#${String(point).padStart(4, '0')};`).join(''),
    percent,
    PERCENT: percent.toUpperCase(),
    'percent in either case': encodeURIComponent(text).replaceAll(/%../g, (code, at: number) =>
      at % 2 === 0 ? code.toLowerCase() : code,
    ),
    'every second character escaped': points
      .map((point, at) => (at % 2 === 0 ? `&#${point};` : String.fromCodePoint(point)))
      .join(''),
  };
}

/** The parts of the forms that depend only on the secret. */
function needlesOf(name: string, value: string): readonly string[] {
  return secretsIn(name, value).flatMap(({ text, least }) => {
    const part = text.slice(0, least);
    const bytes = Buffer.from(part);
    const inner = [0, 1, 2].flatMap((before) => {
      const padded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
      const certain = padded.slice(
        [0, 2, 3][before],
        Math.floor(((before + bytes.length) * 8) / 6),
      );
      return [certain, certain.replaceAll('+', '-').replaceAll('/', '_')];
    });
    return [
      part,
      JSON.stringify(part).slice(1, -1),
      encodeURIComponent(part),
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
      ...inner,
    ];
  });
}

const NEEDLES = Object.entries(CANARIES).flatMap(([name, value]) =>
  [...new Set(needlesOf(name, value))].map((needle) => ({ name, bytes: Buffer.from(needle) })),
);

/** Names the canaries that appear in bytes or a text, in any form. */
export function canariesIn(given: Uint8Array | string): readonly string[] {
  const bytes =
    typeof given === 'string'
      ? Buffer.from(given)
      : Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  const found = NEEDLES.filter((needle) => bytes.includes(needle.bytes));
  return [...new Set(found.map(({ name }) => name))];
}
