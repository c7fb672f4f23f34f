import { describe, expect, onTestFinished, test } from 'vitest';
import { createSession } from '../../src/mcp/session.js';
import { bannerServer } from '../support/banner-server.js';

const BANNERS = {
  'a line': ["console.log('Listening on stdio')", 'Listening on stdio'],
  'a line of JSON': ["console.log(JSON.stringify({ level: 'info' }))", '{"level":"info"}'],
  'text without a line end': ["process.stdout.write('Starting… ')", 'Starting…'],
  'a byte order mark': ["process.stdout.write('\\uFEFF')", null],
  'progress over itself': ["process.stdout.write('10 %\\r100 %\\r')", '10 % 100 %'],
  'the messages that it gets': [
    "process.stdin.on('data', (part) => process.stdout.write('got ' + part))",
    expect.stringMatching(/^got \{"/),
  ],
} as const;

describe('a server that writes to its standard output', () => {
  test.each(Object.entries(BANNERS))('%s starts at once, and is named', async (_, given) => {
    const [code, noise] = given;
    const named: string[] = [];
    const session = createSession(bannerServer(code), process.env, ({ name }, text) =>
      named.push(name, text),
    );
    onTestFinished(() => session.close());
    const { tools } = await session.listing({ maxAgeMs: 0 });
    expect(tools.map(({ name }) => name)).toEqual(['look']);
    const { signal } = new AbortController();
    const result = await session.call('look', {}, { signal, idempotencyKey: 'k' });
    expect(result).toMatchObject({ content: [{ text: 'seen' }] });
    expect(named).toEqual(['odd', noise ?? 'working...']);
  });
});
