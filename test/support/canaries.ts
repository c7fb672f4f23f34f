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
