import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { checkedMessages } from '../../src/cli/mcp/stdio-messages.js';

/** Sends bytes of a client in chunks, and returns what the reader gets and what the client does. */
async function sent(bytes: Uint8Array, size = bytes.length) {
  const input = new PassThrough();
  const output = new PassThrough();
  const notes: string[] = [];
  const read = text(checkedMessages(input, output, (note) => void notes.push(note)));
  for (let at = 0; at < bytes.length; at += size) input.write(bytes.subarray(at, at + size));
  input.end();
  const messages = await read;
  output.end();
  const answers = (await text(output)).split('\n').filter((line) => line !== '');
  return { messages, notes, answers: answers.map((line): unknown => JSON.parse(line)) };
}
const call = (id: unknown, input: string, method = 'tools/call'): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":{"arguments":{"input":${input}}}}\n`;

test('a number that would change is refused to the client, and does not reach a tool', async () => {
  const fine = call(2, '{"order":"12345678901234567891","big":9007199254740991}');
  const lines = [
    call(1, '{"order":12345678901234567891}'),
    fine,
    call('three', '[12345678901234567892]', 'prompts/get'),
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"at":12345678901234567891}}\n',
    call(4, '['.repeat(5_000) + ']'.repeat(5_000)),
  ];
  const { messages, answers } = await sent(Buffer.from(lines.join('')));
  expect(messages).toBe(fine);
  const problem = (number: string): string =>
    `the number ${number} cannot be kept exactly; send it as text: "${number}"`;
  const refused = (said: string) => ({
    content: [said, 'code: input'].map((line) => ({ type: 'text', text: line })),
    isError: true,
    _meta: { 'perdure/code': 'input' },
  });
  expect(answers).toEqual([
    { jsonrpc: '2.0', id: 1, result: refused(problem('12345678901234567891')) },
    {
      jsonrpc: '2.0',
      id: 'three',
      error: { code: -32_602, message: problem('12345678901234567892') },
    },
    {
      jsonrpc: '2.0',
      id: 4,
      result: refused('expected at most 200 levels, got more; flatten the value'),
    },
  ]);
});

test('other lines arrive as they are, however they are split, and without half characters', async () => {
  const lines = [
    call(1, '{"text":"ключ 😀"}'),
    'no JSON\n',
    '\n',
    '{"jsonrpc":"2.0","id":1,"result":{}}\n',
  ];
  const bytes = Buffer.from(lines.join('') + call(2, '"half \\ud83d"'));
  for (const size of [1, 3, 7, 1_000]) {
    const { messages, answers, notes } = await sent(bytes, size);
    const read = lines.filter((line) => line !== 'no JSON\n');
    expect(notes).toEqual([expect.stringMatching(/^expected one message .*, got "no JSON"$/)]);
    expect(messages).toBe(read.join('') + call(2, '"half \ufffd"'));
    expect(answers).toEqual([
      { jsonrpc: '2.0', id: null, error: { code: -32_700, message: expect.any(String) } },
    ]);
  }
});

test('JSON that is not a message is answered, noted in plain words, and not read', async () => {
  const fine = call(2, '1');
  const lines = ['{"a":1}\n', '7\n', `[${fine.trim()}]\n`, '{"id":9,"method":"ping"}\n', fine];
  const { messages, answers, notes } = await sent(Buffer.from(lines.join('')));
  expect(messages).toBe(fine);
  const expected =
    'expected one message of JSON-RPC 2.0 in a line, such as {"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  expect(answers).toEqual(
    [null, null, null, 9].map((id) => ({
      jsonrpc: '2.0',
      id,
      error: { code: -32_600, message: expected },
    })),
  );
  expect(notes).toHaveLength(4);
  expect(notes[0]).toBe(`${expected}, got {"a":1}`);
});

test('arguments that are no object are refused in a sentence', async () => {
  const line =
    '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","arguments":[]}}\n';
  const { messages, answers } = await sent(Buffer.from(line));
  expect(messages).toBe('');
  expect(answers).toMatchObject([
    {
      id: 5,
      result: {
        isError: true,
        content: [
          { text: 'arguments: expected an object with the fields of the tool, got []' },
          { text: 'code: input' },
        ],
      },
    },
  ]);
});
