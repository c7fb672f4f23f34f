import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { defineAgent } from '../../src/agents/define-agent.js';
import { template } from '../../src/prompts/template.js';
import { startStub, type Stub } from '../../src/testing/stub-server.js';
import { replyText } from '../../src/testing/replies.js';
import { commandLine } from '../support/command.js';
import { createRig, type Rig } from '../support/rig.js';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const PDF = Buffer.from('%PDF-1.7\n%%EOF\n');
const command = await commandLine();
let rig: Rig;
let stub: Stub;

const before = process.cwd();

beforeAll(async () => {
  process.chdir(command.folder);
  [rig, stub] = [await createRig(), await startStub()];
  const env = {
    PERDURE_HOME: rig.home,
    OPENAI_BASE_URL: stub.baseUrl,
    PERDURE_MODEL: 'gpt-4.1-mini',
  };
  const asked = template('You speak {{language}}, {{times}} times.', {
    args: ['language', 'times'],
  });
  await rig.worker(
    [
      defineAgent({ name: 'looker', instructions: 'look' }),
      defineAgent({
        name: 'speaker',
        instructions: asked,
        prompts: { report: { text: template('Report on {{topic}}.', { args: ['topic'] }) } },
      }),
      defineAgent({ name: 'reporter', instructions: 'x', prompts: { hello: { text: 'Hello' } } }),
    ],
    { env },
  );
  await writeFile(join(command.folder, 'a.png'), PNG);
  await writeFile(join(command.folder, 'b.pdf'), PDF);
  await writeFile(join(command.folder, 'c.txt'), 'text');
  await writeFile(join(command.folder, 'rows.json'), '[{"a":1},{"a":2}]');
  await writeFile(join(command.folder, 'broken.json'), '[{');
  await writeFile(join(command.folder, 'empty'), '');
  await writeFile(join(command.folder, 'large.png'), PNG);
  await truncate(join(command.folder, 'large.png'), 20 * 1024 * 1024 + 1);
  await mkdir(join(command.folder, 'folder'));
});
afterAll(async () => {
  process.chdir(before);
  await rig.close();
  await stub.close();
  stub.assertConsumed();
});

/** Runs a command on the worker's queue, with the worker's blob store. */
async function perdure(...args: readonly string[]) {
  const place = ['--address', inject('temporalAddress'), '--task-queue', rig.taskQueue];
  return await command.here([...args, ...place], { env: { PERDURE_HOME: rig.home } }).ended;
}

const lastContent = () => stub.requests.at(-1)?.messages.at(-1)?.content;

describe('--attach', () => {
  test('sends an image and a file with the first message, and others with send', async () => {
    stub.script(replyText('a picture and a paper'), replyText('the same'));
    const id = 'attach-two';
    const given = ['--attach', 'a.png', '--attach', 'b.pdf'];
    const begun = await perdure('run', 'looker', 'look', '--open', '--id', id, ...given);
    expect(begun.stderr).not.toContain('--attach');
    expect({ code: begun.code, stdout: begun.stdout }).toEqual({
      code: 0,
      stdout: 'a picture and a paper\n',
    });
    const image = `data:image/png;base64,${PNG.toString('base64')}`;
    expect(lastContent()).toEqual([
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: image } },
      {
        type: 'file',
        file: {
          filename: 'b.pdf',
          file_data: `data:application/pdf;base64,${PDF.toString('base64')}`,
        },
      },
    ]);
    const url = 'https://example.org/a.png';
    const sent = await perdure('send', id, 'and', 'these?', '--attach', url, '--attach', 'a.png');
    expect(sent.stdout).toBe('the same\n');
    expect(lastContent()).toEqual([
      { type: 'text', text: 'and these?' },
      { type: 'image_url', image_url: { url } },
      { type: 'image_url', image_url: { url: image } },
    ]);
    const { stdout } = await perdure('transcript', id);
    expect(stdout).toContain('+ file b.pdf (application/pdf, 15 B)');
    expect((await perdure('close', id)).code).toBe(0);
  });

  test.each([
    ['missing.png', '--attach missing.png: there is no such file'],
    ['folder', '--attach folder: expected a file, got a folder or a device'],
    ['empty', '--attach empty: expected a file with content, got an empty one'],
    ['c.txt', '--attach c.txt: expected a PNG, JPEG, GIF, WebP, or PDF file'],
    ['large.png', '--attach large.png: expected at most 20 MiB, got 20971521 bytes'],
    ['file:///etc/passwd', '--attach file:///etc/passwd: there is no such file'],
  ])('refuses %s with exit code 2, and starts nothing', async (name, why) => {
    const { code, stderr } = await perdure('run', 'looker', 'look', '--attach', name);
    expect(stderr).toContain(why);
    expect(code).toBe(2);
  });

  test('refuses more attachments than a message may have', async () => {
    const all = Array.from({ length: 21 }, () => ['--attach', 'https://example.org/a.png']).flat();
    const { code, stderr } = await perdure('send', 'nobody', 'look', ...all);
    expect(stderr).toContain('--attach: expected 1–20, got 21');
    expect(code).toBe(2);
  });
});

describe('--artifact', () => {
  const asked = () => JSON.stringify(stub.requests.at(-1)?.messages);

  test('sends the content of a file as an artifact, and others with send', async () => {
    stub.script(replyText('rows'), replyText('a note'));
    const id = 'artifact-two';
    const begun = await perdure(
      'run',
      'looker',
      'look',
      '--open',
      '--id',
      id,
      '--artifact',
      'rows=rows.json',
    );
    expect(begun.stdout).toBe('rows\n');
    expect(asked()).toContain('array of 2 objects, the first with keys a');
    const more = ['--artifact', 'note=c.txt', '--context', '{"role":"admin"}'];
    expect((await perdure('send', id, 'and', 'this?', ...more)).stdout).toBe('a note\n');
    expect(asked()).toContain('text of 4 characters');
    expect((await perdure('close', id)).code).toBe(0);
  });

  test.each([
    [['rows'], '--artifact rows: expected NAME=FILE, such as orders=orders.json'],
    [['rows=missing.json'], '--artifact missing.json: there is no such file'],
    [['rows=broken.json'], '--artifact broken.json: expected JSON'],
    [['A=c.txt'], '--artifact: expected names of 1 to 64 of a–z, 0–9, "_", and "-", got "A"'],
    [['n=c.txt', 'n=rows.json'], '--artifact n: expected each name once, got it twice'],
    [
      Array.from({ length: 21 }, (_, number) => `n${number}=c.txt`),
      '--artifact: expected at most 20, got 21',
    ],
  ])('refuses %j with exit code 2, and starts nothing', async (given, why) => {
    const options = given.flatMap((one) => ['--artifact', one]);
    const { code, stderr } = await perdure('run', 'looker', 'look', ...options);
    expect(stderr).toContain(why);
    expect(code).toBe(2);
  });
});

describe('--arg', () => {
  test('fills the template of the agent', async () => {
    stub.script(replyText('oui'));
    const given = ['--arg', 'language=French = français', '--arg', 'times:=3'];
    const { code, stdout } = await perdure('run', 'speaker', 'speak', ...given);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'oui\n' });
    const [system] = stub.requests.at(-1)?.messages ?? [];
    expect(system?.content).toBe('You speak French = français, 3 times.');
  });

  test('names a missing argument and an unknown one', async () => {
    const { code, stderr } = await perdure('run', 'speaker', 'x', '--arg', 'langage=French');
    expect(stderr).toContain('unknown argument "langage"');
    expect(stderr).toContain('language is missing');
    expect(code).toBe(1);
  });

  test.each([
    [['--arg', 'language'], 'Expected NAME=TEXT or NAME:=JSON.'],
    [['--arg', 'times:={'], 'Expected JSON'],
    [['--arg', 'a=1', '--arg', 'a=2'], 'The argument a is given twice.'],
  ])('refuses %j with exit code 2', async (given, why) => {
    const { code, stderr } = await perdure('run', 'speaker', 'x', ...given);
    expect(stderr).toContain(why);
    expect(code).toBe(2);
  });
});

describe('--prompt', () => {
  test('starts a run with a prompt, and sends another one to it', async () => {
    stub.script(replyText('begun'), replyText('reported'));
    const ofInstructions = ['--arg', 'language=French', '--arg', 'times:=3'];
    const prompt = ['--prompt', 'report', '--arg', 'topic=Rome'];
    const id = `prompted-${rig.taskQueue}`;
    // With the configuration, the command knows which arguments belong to the instructions.
    const config = join(command.folder, 'prompts.config.ts');
    await writeFile(
      config,
      `import { defineAgent, template } from 'perdure';
      const text = template('Report on {{topic}}.', { args: ['topic'] });
      const instructions = template('{{language}}{{times}}', { args: ['language', 'times'] });
      export default { agents: [defineAgent({ name: 'speaker', instructions, prompts: { report: { text } } })] };`,
    );
    const run = await perdure(
      'run',
      'speaker',
      ...prompt,
      ...ofInstructions,
      '--open',
      '--id',
      id,
      '--config',
      config,
    );
    expect(run).toMatchObject({ code: 0, stdout: 'begun\n' });
    const [system] = stub.requests.at(-1)?.messages ?? [];
    expect([system?.content, lastContent()]).toEqual([
      'You speak French, 3 times.',
      'Report on Rome.',
    ]);
    const sent = await perdure('send', id, '--prompt', 'report', '--arg', 'topic=Ulm');
    expect(sent).toMatchObject({ code: 0, stdout: 'reported\n' });
    expect(lastContent()).toBe('Report on Ulm.');
    const wrong = await perdure('send', id, '--prompt', 'reprot', '--arg', 'topic=Ulm');
    expect(wrong.stderr).toContain('--prompt: expected a prompt of agent "speaker", got "reprot"');
    await perdure('close', id);
  });

  test('requires the arguments of the prompt', async () => {
    const { code, stderr } = await perdure('run', 'reporter', '--prompt', 'hello', '--arg', 'a=1');
    expect(stderr).toContain('args.a: expected an argument of prompt "hello" (it has none)');
    expect(code).toBe(1);
  });

  test.each([
    [['--prompt', 'a', 'text'], 'message: cannot be combined with "prompt"'],
    [['--prompt', 'a b'], '--prompt: expected the name of a prompt'],
  ])('refuses %j with exit code 2', async (given, why) => {
    const { code, stderr } = await perdure('run', 'speaker', ...given);
    expect(stderr).toContain(why);
    expect(code).toBe(2);
  });
});
