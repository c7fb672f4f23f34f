import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { PromptMessage } from '../../src/core/transcript/messages.js';
import { demoModel } from '../../src/models/demo/model.js';
import { ModelError } from '../../src/models/model-error.js';
import type { ModelReply, ModelRequest } from '../../src/models/model.js';
import { parseArguments } from '../../src/tools/arguments/arguments.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { fileTools } from '../../src/tools/files/file-tools.js';
import { normalizeError } from '../../src/tools/result/normalize-error.js';
import type { Tool } from '../../src/tools/tool.js';
import { callTool, temporaryFolder, toolNamed } from '../tools/support.js';

const PROJECT = {
  'README.md': '# The Lighthouse\n\nKeeps ships off the rocks.\n\n## Use\n\nTurn it on.\n',
  'package.json': '{ "name": "lighthouse", "version": "2.1.0", "description": "A lamp" }\n',
  'src/lamp.ts': 'export function shine(): string {\n  return "light"; // TODO: blink\n}\n',
  'src/deep/fog.ts': "import { shine } from '../lamp.js';\nexport const fog = shine();\n",
  'notes/big.txt': 'x'.repeat(4_000),
  'node_modules/other/index.ts': 'shine TODO',
};

async function projectFolder(files: Readonly<Record<string, string>> = PROJECT): Promise<string> {
  const root = await temporaryFolder();
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), content);
  }
  return root;
}

function request(
  messages: readonly PromptMessage[],
  changes: Partial<ModelRequest> = {},
): ModelRequest {
  return {
    model: 'demo',
    instructions: 'Help.',
    messages,
    tools: [],
    toolChoice: 'auto',
    settings: {},
    ...changes,
  };
}

async function reply(asked: ModelRequest): Promise<ModelReply> {
  return demoModel().call(asked, { signal: new AbortController().signal });
}

interface Turn {
  readonly answer: string;
  readonly steps: number;
  /** `tool {"arguments"}`, in order. */
  readonly calls: readonly string[];
  readonly messages: readonly PromptMessage[];
}

type Result = (tool: Tool, input: string) => Promise<string>;

const execute: Result = async (tool, input) => {
  const parsed = parseArguments(input);
  try {
    return await callTool(tool, parsed.ok ? parsed.value : {});
  } catch (error) {
    const { message } = normalizeError(error);
    return JSON.stringify({ error: { type: 'tool_error', message } });
  }
};

/** One turn as the engine runs it, with the tools really called. */
async function ask(question: string, tools: readonly Tool[], result = execute): Promise<Turn> {
  const messages: PromptMessage[] = [{ role: 'user', text: question }];
  const calls: string[] = [];
  for (let step = 1; step <= 20; step += 1) {
    const said = await reply(request(messages, { tools }));
    if (said.calls.length === 0) return { answer: said.text, steps: step, calls, messages };
    const asked = said.calls.map((call, index) => ({
      ...call,
      id: `call_1_${step}_${index}`,
      digest: '',
    }));
    messages.push({ role: 'assistant', text: said.text, calls: asked });
    for (const call of asked) {
      calls.push(`${call.name} ${call.arguments}`);
      const text = await result(toolNamed(tools, call.name), call.arguments);
      messages.push({ role: 'tool', text, callId: call.id });
    }
  }
  throw new Error(`no answer after 20 steps: ${calls.join('\n')}`);
}

async function askProject(question: string): Promise<Turn> {
  return ask(question, fileTools({ root: await projectFolder(), write: true }));
}

describe('the demo model', () => {
  it('looks around when it is asked nothing that it knows, in at least four steps', async () => {
    const { answer, steps, calls } = await askProject('Tell me about this project, please.');
    expect(steps).toBe(5);
    expect(calls.map((call) => call.split(' ')[0])).toEqual([
      'list_files',
      'read_file',
      'read_file',
      'list_files',
      'search_text',
    ]);
    expect(answer).toContain('This folder holds 3 folders and 2 files: README.md, node_modules/,');
    expect(answer).toContain('README.md (7 lines) begins with "The Lighthouse".');
    expect(answer).toContain('package.json names the package "lighthouse", 2.1.0, A lamp.');
    expect(answer).toContain('With the folders below: 5 files (without node_modules)');
    expect(answer).toContain('the largest is notes/big.txt (4000 bytes)');
    expect(answer).toContain('"TODO" stands in 1 line of 1 file.');
  });

  it('takes four steps in an empty folder too', async () => {
    const { answer, steps } = await ask('hello', fileTools({ root: await projectFolder({}) }));
    expect(steps).toBe(4);
    expect(answer).toContain('This folder holds 0 folders and 0 files.');
  });

  it.each([
    [
      'How many files are here?',
      'This folder itself holds 2 files and 3 folders. With everything below it (without node_modules): 5 files in 4 folders.',
    ],
    [
      'how many TypeScript files are there?',
      'There are 2 TypeScript files (*.{ts,tsx,mts,cts}) in this folder and the folders below it (without node_modules), such as src/deep/fog.ts, src/lamp.ts.',
    ],
    [
      'Count the files in src',
      'src itself holds 1 file and 1 folder. With everything below it: 2 files in 1 folder.',
    ],
    ['how many .md files?', 'There is 1 .md file (*.md)'],
    ['find *.txt', 'There is 1 *.txt file (*.txt)'],
    [
      'what is in this directory?',
      'This folder holds 3 folders and 2 files: README.md, node_modules/, notes/, package.json, src/.',
    ],
    ['list src', 'src holds 1 folder and 1 file: src/deep/, src/lamp.ts.'],
    ["What's in the src/deep folder?", 'src/deep holds 0 folders and 1 file: src/deep/fog.ts.'],
    ['How many lines are in README.md?', 'README.md has 7 lines (66 bytes).'],
    [
      'how many lines of TypeScript are there?',
      'There are 5 lines in 2 TypeScript files in this folder and below.',
    ],
    ['list the Markdown files', 'There is 1 Markdown file (*.{md,mdx})'],
    ['list everything', 'This folder holds 3 folders and 2 files'],
    [
      'What is the largest file?',
      'The largest of 5 files (without node_modules) is notes/big.txt (4000 bytes).',
    ],
    [
      'What does README.md say?',
      'It has: The Lighthouse · Use.\nIt begins:\n> # The Lighthouse\n> Keeps ships off the rocks.',
    ],
    ['Summarize src/lamp.ts', 'src/lamp.ts has 69 bytes and 3 lines.\nIt has: shine.'],
    ['read lamp.ts', 'src/lamp.ts has 69 bytes'],
    [
      'How many TODOs are there?',
      '"TODO" stands in 1 line of 1 file:\nsrc/lamp.ts:2: return "light"; // TODO: blink',
    ],
    [
      "search for 'keeps ships'",
      '"keeps ships" stands (in upper or lower case) in 1 line of 1 file:\nREADME.md:3:',
    ],
    ['which files mention nonsense?', '"nonsense" does not occur in 5 files that I searched.'],
    ['Where is fog?', 'Files with that name: src/deep/fog.ts.'],
  ])('answers %j truly', async (question, expected) => {
    expect((await askProject(question)).answer).toContain(expected);
  });

  it('shows the definition of what it finds', async () => {
    const { answer } = await askProject('Where is shine defined?');
    expect(answer).toContain('"shine" stands in 3 lines of 2 files:');
    expect(answer).toContain('Around src/lamp.ts:1:\nexport function shine(): string {');
  });

  it('writes what it is told and reads it back', async () => {
    const root = await projectFolder();
    const turn = await ask(
      "Write 'keep watch' to notes/today.md",
      fileTools({ root, write: true }),
    );
    expect(turn.answer).toContain(
      'I wrote 10 bytes to notes/today.md. I read it back, and it is all',
    );
    expect(await readFile(path.join(root, 'notes/today.md'), 'utf8')).toBe('keep watch');
    const missing = await ask('Create notes/empty.md', fileTools({ root, write: true }));
    expect(missing.answer).toContain('not without its text: put that in quotes');
    expect(missing.calls).toEqual([]);
  });

  it('says that it cannot write where the tools only read', async () => {
    const root = await projectFolder();
    const turn = await ask("Write 'keep watch' to notes/today.md", fileTools({ root }));
    expect(turn.answer).toContain('I cannot write notes/today.md: the tools that I have only read');
    expect(turn.calls).toEqual([]);
  });

  it('writes its own summary', async () => {
    const root = await projectFolder();
    const turn = await ask(
      'Summarize the project and write it to SUMMARY.md',
      fileTools({ root, write: true }),
    );
    expect(turn.steps).toBe(7);
    const written = await readFile(path.join(root, 'SUMMARY.md'), 'utf8');
    expect(written).toContain('README.md (7 lines) begins with "The Lighthouse".');
    expect(turn.answer).toContain(written.trim());
  });

  it('says what went wrong instead of an answer', async () => {
    const root = await projectFolder();
    await symlink('/etc', path.join(root, 'etc'));
    const tools = fileTools({ root, write: true });
    for (const [question, expected] of [
      ['What does nothing.md say?', 'read_file did not work: "nothing.md" does not exist'],
      ['What does /etc/passwd say?', '"/etc/passwd" is outside the folder'],
      ['read etc/passwd', 'leads out of the folder'],
      ['how many files are in lib?', 'list_files did not work: "lib" does not exist'],
      ["write 'x' to ../evil.txt", 'write_file did not work: "../evil.txt" is outside'],
    ] as const) {
      expect((await ask(question, tools)).answer).toContain(expected);
    }
  });

  it('names the files that could have been meant', async () => {
    const files = { 'a/index.ts': 'a\n', 'b/index.ts': 'b\n' };
    const tools = fileTools({ root: await projectFolder(files) });
    const { answer } = await ask('read index.ts', tools);
    expect(answer).toContain('Files of that name: a/index.ts, b/index.ts');
  });

  it('says in each answer that it is no LLM', async () => {
    for (const question of ['hello', 'read README.md', 'read nothing.md', 'create x.md']) {
      const { answer } = await askProject(question);
      expect(answer).toContain(
        'by the demo model: code that chooses tools by the words of a question',
      );
      expect(answer).toContain('It is no LLM');
    }
  });

  it('says the same to the same request', async () => {
    const root = await projectFolder();
    const { messages, answer } = await ask('hello', fileTools({ root }));
    const asked = request(messages, { tools: fileTools({ root }) });
    expect(await reply(asked)).toEqual(await reply(asked));
    expect((await reply(asked)).text).toBe(answer);
  });

  it('answers only the last question, from what came after it', async () => {
    const tools = fileTools({ root: await projectFolder() });
    const { messages, answer } = await ask('How many lines are in README.md?', tools);
    const next: PromptMessage[] = [
      ...messages,
      { role: 'assistant', text: answer },
      { role: 'user', text: 'How many lines are in README.md?' },
    ];
    expect((await reply(request(next, { tools }))).calls).toHaveLength(1);
    const closing: PromptMessage = {
      role: 'user',
      text: 'Answer now: how many?',
      origin: 'perdure',
    };
    expect((await reply(request([...messages, closing], { tools }))).text).toBe(answer);
  });

  it('answers from what is there when no calls are permitted', async () => {
    const tools = fileTools({ root: await projectFolder() });
    const { messages } = await ask('hello', tools);
    for (const seen of [1, 3, messages.length]) {
      const said = await reply(request(messages.slice(0, seen), { tools, toolChoice: 'none' }));
      expect(said.calls).toEqual([]);
      expect(said.finish).toBe('stop');
    }
    const partly = await reply(request(messages.slice(0, 3), { tools, toolChoice: 'none' }));
    expect(partly.text).toContain('This folder holds 3 folders and 2 files');
    expect(partly.text).toContain('not looked at: no more calls are permitted');
  });

  it('asks again for a call that was left out, but not for ever', async () => {
    const tools = fileTools({ root: await projectFolder() });
    const skipped = JSON.stringify({ error: { type: 'not_executed', message: 'only the first' } });
    let number = 0;
    const onlyFirstRead: Result = async (tool, input) => {
      number += 1;
      return number === 3 ? skipped : execute(tool, input);
    };
    const once = await ask('hello', tools, onlyFirstRead);
    expect(once.answer).toContain('names the package "lighthouse"');
    const never = await ask('read README.md', tools, () => Promise.resolve(skipped));
    expect(never.answer).toContain('read_file did not work: only the first');
  });

  it('reads an answer from the record as the answer', async () => {
    const tools = fileTools({ root: await projectFolder() });
    const { answer } = await ask('How many lines are in README.md?', tools, async (tool, input) => {
      const note =
        '[already done in this turn as call_1_1_0; not executed again, this is its result]';
      return `${note}\n${await execute(tool, input)}`;
    });
    expect(answer).toContain('README.md has 7 lines');
  });

  it('says which tool is missing', async () => {
    const tools = fileTools({ root: await projectFolder() });
    const reader = [toolNamed(tools, 'read_file')];
    expect((await ask('list src', reader)).answer).toContain('this agent has no tool list_files');
  });

  it('estimates what it used', async () => {
    const { usage } = await reply(request([{ role: 'user', text: 'hello' }]));
    expect(usage?.inputTokens).toBeGreaterThan(0);
    expect(usage?.outputTokens).toBeGreaterThan(0);
    expect(usage?.cachedTokens).toBe(0);
  });

  it('breaks off its delay when it is cancelled', async () => {
    const cancel = new AbortController();
    const waiting = demoModel({ delayMs: 2 ** 30 }).call(request([]), { signal: cancel.signal });
    cancel.abort();
    const error: unknown = await waiting.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ModelError);
    const aborted = demoModel().call(request([]), { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toBeInstanceOf(ModelError);
    expect(() => demoModel({ delayMs: -1 })).toThrow('must be 0 or more milliseconds, not -1');
  });
});

describe('the demo model with tools that it does not know', () => {
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

  it('calls none by itself and names them', async () => {
    const { answer, calls } = await ask('Please greet my order 17', [refund, greet]);
    expect(calls).toEqual([]);
    expect(answer).toContain('I can only drive the file tools by myself');
    expect(answer).toContain('It has: refund_order, greet.');
    expect((await ask('hi', [])).answer).toContain('This agent has no tools');
  });

  it('calls the one that is named, with arguments from the message', async () => {
    const turn = await ask('Use refund_order for "A 17" with 400 cents', [refund, greet]);
    expect(turn.calls).toEqual(['refund_order {"order":"A 17","cents":400}']);
    expect(turn.answer).toContain('refund_order answered:\npaid 400 for A 17');
    expect((await ask('call greet with "Ada"', [refund, greet])).answer).toContain('hello Ada');
    expect((await ask('call greet', [refund, greet])).answer).toContain('hello you');
  });

  it('asks for the arguments that it cannot fill', async () => {
    const turn = await ask('refund_order "A 17"', [refund]);
    expect(turn.calls).toEqual([]);
    expect(turn.answer).toContain('To call refund_order I need `cents`: put the text in quotes');
  });

  it('says how the call failed', async () => {
    const broken = defineTool({
      name: 'break_it',
      description: 'Fails.',
      effect: 'read',
      input: z.object({}),
      execute: () => Promise.reject(new Error('it is closed')),
    });
    expect((await ask('break_it', [broken])).answer).toContain(
      'break_it did not work: it is closed',
    );
  });

  it('does not take the name of a file for that of a tool', async () => {
    const root = await projectFolder({ 'read_file.md': '# Reading\n' });
    const { answer } = await ask('What does read_file.md say?', fileTools({ root }));
    expect(answer).toContain('It has: Reading.');
  });
});
