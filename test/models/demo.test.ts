import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { PLAN_REPORT } from '../../src/core/plan/results.js';
import { repairText } from '../../src/core/run/on-reply.js';
import { documentKey, documentText } from '../../src/core/rules/documents.js';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { demoModel } from '../../src/models/demo/model.js';
import { ModelError } from '../../src/models/model.js';
import { createModelCatalog } from '../../src/models/model-catalog.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { fileTools } from '../../src/tools/files/file-tools.js';
import { temporaryFolder } from '../tools/support.js';
import { ask, getReply, request } from './demo-turn.js';

const PROJECT = {
  'README.md': '# The Lighthouse\n\nKeeps ships off the rocks.\n\n## Use\n\nTurn it on.\n',
  'package.json': '{ "name": "lighthouse" }\n',
  LICENSE: 'LICENSE\n\nNobody may.\n',
  'src/lamp.ts': 'export const light = 1;\n',
};

async function projectTools(files: Readonly<Record<string, string>> = PROJECT) {
  const root = await temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), content);
  }
  return fileTools({ root });
}

describe('the tour of the demo model', () => {
  it('lists the folder, reads its README, and quotes it', async () => {
    const { answer, calls } = await ask('What is this project?', await projectTools());
    expect(calls).toEqual(['list_files {"path":"."}', 'read_file {"path":"README.md"}']);
    expect(answer).toContain('list_files returned ".: 1 folder, 3 files (1 level)":');
    expect(answer).toContain('LICENSE, README.md, package.json, src/');
    expect(answer).toContain('read_file returned "README.md: 66 bytes, lines 1-7 of 7":');
    expect(answer).toContain('> # The Lighthouse\n> Keeps ships off the rocks.');
  });

  it.each([
    ['What does src/lamp.ts do?', 'src/lamp.ts', '> export const light = 1;'],
    ['Read "package.json".', 'package.json', '> { "name": "lighthouse" }'],
    ['Who may use it? See LICENSE.', 'LICENSE', '> Nobody may.'],
    ['What is in nothing.md?', 'nothing.md', 'read_file failed: "nothing.md" does not exist'],
    ['Show me /etc/passwd', '/etc/passwd', 'read_file failed: "/etc/passwd" is outside the folder'],
  ])('reads the file that is named: %s', async (question, file, expected) => {
    const { answer, calls } = await ask(question, await projectTools());
    expect(calls[1]).toBe(`read_file {"path":"${file}"}`);
    expect(answer).toContain(expected);
  });

  it('reads nothing if there is no README', async () => {
    const { answer, calls } = await ask('hello', await projectTools({ 'a.txt': 'a' }));
    expect(calls).toHaveLength(1);
    expect(answer).toContain('There is no README here; name a file, and I read it.');
    const empty = await ask('hello', await projectTools({}));
    expect(empty.answer).toContain('list_files returned ".: 0 folders, 0 files (1 level)".');
  });

  it('answers at a limit from what it has read so far', async () => {
    const tools = await projectTools();
    const question = 'What is this project?';
    const whole = await ask(question, tools);
    expect((await ask(question, tools, { maxSteps: 2 })).answer).toBe(whole.answer);
    const listed = await ask(question, tools, { maxSteps: 1 });
    expect(listed.answer).toContain('LICENSE, README.md, package.json, src/');
    expect(listed.answer).toContain('README.md was not read: no further call was permitted.');
    const blind = await ask(question, tools, { maxSteps: 0 });
    expect(blind.answer).toContain('The folder was not listed: no further call was permitted.');
    for (const { answer } of [whole, listed, blind]) expect(answer).not.toContain('failed');
  });

  it('states in each answer that it is not an LLM', async () => {
    const tools = await projectTools();
    for (const question of ['hello', 'read nothing.md', 'call "list_files"', 'call "read_file"']) {
      const { answer } = await ask(question, tools);
      expect(answer).toMatch(/\n\n\(The demo model wrote this: a fixed script, not an LLM\. .*\)$/);
    }
  });

  it('explains itself once in a conversation', async () => {
    const question: PromptMessage = { role: 'user', text: 'hello' };
    const { text } = await getReply(request([question]));
    expect(text).toContain('OPENAI_API_KEY');
    const later = await getReply(
      request([question, { role: 'assistant', text }, { role: 'user', text: 'and again?' }]),
    );
    expect(later.text).toMatch(/\n\n\(The demo model wrote this: a fixed script, not an LLM\.\)$/);
  });

  it('gives equal replies to equal requests', async () => {
    const tools = await projectTools();
    const { messages, answer } = await ask('hello', tools);
    const again = request(messages, { tools });
    expect(await getReply(again)).toEqual(await getReply(again));
    expect((await getReply(again)).text).toBe(answer);
  });

  it('answers only the last question, and does not mistake a document for one', async () => {
    const tools = await projectTools();
    const { messages, answer } = await ask('What does src/lamp.ts do?', tools);
    const text = 'Read README.md first';
    const document = documentText(documentKey({ text }), { shown: text });
    const next: PromptMessage[] = [
      ...messages,
      { role: 'assistant', text: answer },
      { role: 'user', text: 'And package.json?' },
      { role: 'user', text: document },
    ];
    const { calls } = await getReply(request(next, { tools }));
    expect(calls).toEqual([{ name: 'list_files', arguments: '{"path":"."}' }]);
  });

  it('estimates its usage', async () => {
    const { usage } = await getReply(request([{ role: 'user', text: 'hello' }]));
    expect(usage?.inputTokens).toBeGreaterThan(0);
    expect(usage?.outputTokens).toBeGreaterThan(0);
    expect(usage?.cachedTokens).toBe(0);
  });

  it('reads whether a call failed from its record, not from its text', async () => {
    const tools = await projectTools();
    const { messages } = await ask('What does src/lamp.ts do?', tools);
    const text = '{"error":{"type":"denied","message":"a line of a log"}}';
    const told = (ok: boolean | undefined, said: string) => {
      const last = messages.findLastIndex(({ role }) => role === 'tool');
      const changed = messages.map((message, at) =>
        at === last && message.role === 'tool'
          ? { ...message, text: said, ...(ok !== undefined && { ok }) }
          : message,
      );
      return getReply(request(changed, { tools }));
    };
    expect((await told(true, text)).text).toContain(`read_file returned "${text}"`);
    expect((await told(undefined, text)).text).toContain('read_file failed: a line of a log');
    expect((await told(false, 'no disk')).text).toContain('read_file failed: no disk');
  });

  it('ends its delay when it is canceled', async () => {
    const cancel = new AbortController();
    const waiting = demoModel({ delayMs: 2 ** 30 }).call(request([]), { signal: cancel.signal });
    cancel.abort();
    const error: unknown = await waiting.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelError);
    const aborted = demoModel().call(request([]), { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toBeInstanceOf(ModelError);
    expect(() => demoModel({ delayMs: -1 })).toThrow(
      'delayMs: expected 0 or more milliseconds, got -1',
    );
  });
});

describe('a tool that the question names in quotes', () => {
  const refund = defineTool({
    name: 'refund_order',
    description: 'Pays back.',
    effect: 'keyed',
    input: z.object({ order: z.string(), cents: z.int(), note: z.string().optional() }),
    execute: ({ order, cents }) => `paid ${cents} for ${order}`,
  });
  const greet = defineTool({
    name: 'greet',
    description: 'Greets.',
    effect: 'read',
    input: z.object({ who: z.string().default('you') }),
    execute: ({ who }) => `hello ${who}`,
  });

  it('is called once, with the other quoted texts as its arguments', async () => {
    const turn = await ask('Use "refund_order" for "A 17" with `400` cents', [refund, greet]);
    expect(turn.calls).toEqual(['refund_order {"order":"A 17","cents":400}']);
    expect(turn.answer).toContain('refund_order returned "paid 400 for A 17".');
    expect((await ask("call 'greet' with 'Ada'", [refund, greet])).answer).toContain('hello Ada');
    expect((await ask('call "greet"', [refund, greet])).answer).toContain('hello you');
    const limited = await ask('call "greet"', [greet], { maxSteps: 0 });
    expect(limited.answer).toContain('greet was not called: no further call was permitted.');
  });

  it('is not called while a required argument is missing', async () => {
    const turn = await ask('"refund_order" for "A 17"', [refund]);
    expect(turn.calls).toEqual([]);
    expect(turn.answer).toContain('refund_order needs `cents`: put its value in quotes');
    const wrong = await ask('"refund_order" for "A 17" with "many" cents', [refund]);
    expect(wrong.calls).toEqual(['refund_order {"order":"A 17","cents":"many"}']);
    expect(wrong.answer).toContain('refund_order failed: ');
  });

  it('is called before any tour, even if it is a file tool', async () => {
    const { calls } = await ask('"read_file" of "src/lamp.ts"', await projectTools());
    expect(calls).toEqual(['read_file {"path":"src/lamp.ts"}']);
  });

  it('fails with the message of its error', async () => {
    const broken = defineTool({
      name: 'break_it',
      description: 'Fails.',
      effect: 'read',
      input: z.object({}),
      execute: () => Promise.reject(new Error('it is closed')),
    });
    const { answer } = await ask('"break_it"', [broken]);
    expect(answer).toContain('break_it failed: it is closed');
  });

  it('is called with JSON arguments, and without quotes if its name is no word of prose', async () => {
    const { calls } = await ask('Now refund_order {"order": "A", "cents": 5}', [refund, greet]);
    expect(calls).toEqual(['refund_order {"order":"A","cents":5}']);
    const { answer } = await ask('hello', [refund]);
    expect(answer).toContain('write its name and arguments: refund_order {"');
  });

  it('is called as its hint says, also if its name is a word of prose', async () => {
    for (const text of ['greet {"who":"Bo"}', 'Please call greet with "Bo"', 'greet{"who":"Bo"}']) {
      expect((await ask(text, [refund, greet])).calls).toEqual(['greet {"who":"Bo"}']);
    }
  });

  it('is not called with a placeholder or with broken JSON, and its example can be pasted', async () => {
    const open = await ask('refund_order {"order":"…","cents":5}', [refund]);
    expect(open.calls).toEqual([]);
    expect(open.answer).toContain('"…" stands for the `order` of refund_order');
    expect((await ask('call "greet" with "..."', [greet])).calls).toEqual([]);
    const broken = await ask('refund_order {"order":"A","cents":…}', [refund]);
    expect(broken.calls).toEqual([]);
    const [, example = ''] = /Write, for example: (.*)/.exec(broken.answer) ?? [];
    expect((await ask(example, [refund])).calls).toEqual([
      'refund_order {"order":"text","cents":1}',
    ]);
  });

  it('is suggested before the tool that reads long results', async () => {
    const readResult = defineTool({
      name: 'read_result',
      description: 'Reads on.',
      effect: 'read',
      input: z.object({ ref: z.string() }),
      execute: () => '',
    });
    const { answer } = await ask('hello', [readResult, greet]);
    expect(answer).toContain('This agent has the tool greet. Write its name in quotes, then');
    expect(answer).toContain('write its name and arguments: greet {');
  });

  it('is suggested if the agent has no file tools', async () => {
    const { answer, calls } = await ask('Please greet my order 17', [refund, greet]);
    expect(calls).toEqual([]);
    expect(answer).toContain('This agent has the tools refund_order, greet.');
    expect(answer).toContain(
      'Write the name of one in quotes, then its arguments as JSON or in quotes',
    );
    const none = (await ask('hi', [])).answer;
    expect(none).toContain('This agent has no tools.');
    expect(none).not.toContain('to call a tool');
  });
});

it('answers with the results of its calls after a message that only approved one', async () => {
  const call = { id: 'c', name: 'refund', arguments: '{}', digest: '' };
  const messages: PromptMessage[] = [
    { role: 'user', text: 'Call "refund"' },
    { role: 'assistant', text: '', calls: [call] },
    { role: 'tool', text: 'refunded', callId: 'c' },
    { role: 'user', text: 'yes' },
  ];
  const tools = [{ name: 'refund', description: 'x', parameters: { type: 'object' } }];
  const { text, calls } = await getReply(request(messages, { tools }));
  expect(calls).toEqual([]);
  expect(text).toContain('refund returned "refunded".');
});

describe('a plan of the demo model', () => {
  const tool = (name: string) => ({
    name,
    description: 'x',
    parameters: {
      type: 'object',
      properties: { title: { type: 'string' } },
      required: ['title'],
    },
  });
  const plan = async (question: string): Promise<unknown> => {
    const reply = await getReply(
      request([{ role: 'user', text: question }], {
        tools: [tool('add_event'), tool('delete_event'), tool('read_result')],
        responseFormat: { name: 'plan', schema: {}, instruction: '' },
      }),
    );
    expect(reply.calls).toEqual([]);
    return JSON.parse(reply.text);
  };

  it('has the calls that the message names, in its order', async () => {
    const expected = {
      actions: [
        { id: 'a1', tool: 'delete_event', arguments: { title: 'old' }, after: [] },
        { id: 'a2', tool: 'add_event', arguments: { title: 'talk {1}' }, after: [] },
        { id: 'a3', tool: 'add_event', arguments: { title: 'x' }, after: [] },
      ],
      answer: null,
    };
    const named =
      '"delete_event" "old", then add_event {"title":"talk {1}"} and add_event {"title":"x"}';
    expect(await plan(named)).toEqual(expected);
  });

  it('is followed by an answer that quotes what was done', async () => {
    const report = `${PLAN_REPORT}\n- a1 add_event done: {"id":"x"}\nNot done: a2 delete_event.\nAnswer the user.`;
    const messages: PromptMessage[] = [
      { role: 'user', text: 'add_event "x", delete_event "y"' },
      { role: 'user', text: report },
    ];
    const answered: PromptMessage = { role: 'user', text: 'yes' };
    for (const more of [[], [answered]]) {
      const { text } = await getReply(
        request([...messages, ...more], { tools: [tool('add_event')], toolChoice: 'none' }),
      );
      expect(text).toMatch(
        /^- a1 add_event done: \{"id":"x"\}\nNot done: a2 delete_event\.\n\n\(The demo/,
      );
    }
  });

  it('is an answer if the message names no tool, or an argument is missing', async () => {
    expect(await plan('hello')).toEqual({
      actions: [],
      answer: expect.stringContaining('This agent has the tools add_event, delete_event.'),
    });
    expect(await plan('add_event')).toEqual({
      actions: [],
      answer: expect.stringContaining('add_event needs `title`'),
    });
  });

  it('is an answer that says what is wrong with the plan if that was not accepted', async () => {
    const problem = 'actions[0].arguments: add_event: start: expected a date, got "tuesday"';
    expect(await plan(repairText(problem, { attempt: 1, attempts: 3 }))).toEqual({
      actions: [],
      answer: `The plan was not accepted: ${problem}`,
    });
  });
});

describe('an entry of the configuration that names the demo model', () => {
  it('is the demo model, with a price to try limits of the cost', async () => {
    const price = { input: 100, cachedInput: 10, output: 1_000 };
    const env = { OPENAI_API_KEY: 'x', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' };
    const catalog = createModelCatalog({ priced: { model: 'demo', price } }, env);
    const { model, name, provider, price: own } = catalog.resolve('priced');
    expect({ name, provider, own }).toEqual({ name: 'demo', provider: 'demo', own: price });
    const question = request([{ role: 'user', text: 'hello' }]);
    const { text } = await model.call(question, { signal: new AbortController().signal });
    expect(text).toContain('The demo model wrote this');
  });

  it('is a model of a server that has a model of this name', () => {
    const entry = { model: 'demo', baseUrl: 'http://127.0.0.1:1/v1' };
    expect(createModelCatalog({ own: entry }, {}).resolve('own').provider).toBe('openai');
  });
});
