import { InvalidArgumentError, Option, type Command as Program } from 'commander';
import type { Command } from './command.js';
import type { Enter } from './register-command.js';
import { repeated, templateArguments } from './repeated-options.js';
import { registerTalk } from './talk-commands.js';

/** Runs a command that commander has found: `used` is its entry, `own` what stood behind its name. */
export type Runner = (
  used: Program,
  own: object,
  load: () => Promise<Command<never>>,
) => Promise<void>;

/** Enters every command into the program. Their modules are loaded when one is used. */
export function registerCommands(program: Program, runner: Runner): void {
  const enter = (
    usage: string,
    description: string,
    load: () => Promise<Command<never>>,
  ): Program => {
    const entry = program.command(usage).description(description);
    // Commander hands over the positional arguments, the options and the entry.
    return entry.action(async () => {
      const names = entry.registeredArguments.map((argument) => camelCase(argument.name()));
      const positional = names.map((name, index) => [name, entry.processedArgs[index]]);
      await runner(entry, { ...Object.fromEntries(positional), ...entry.opts() }, load);
    });
  };
  enter(
    'init',
    'write a perdure.config.ts to begin with, with a task queue of its own',
    async () => (await import('./commands/init.js')).init,
  );
  registerHosts(enter);
  registerReaders(enter);
  registerDecisions(enter);
  registerTalk(enter);
}

/** Commands that may bring a worker with them. */
function registerHosts(enter: Enter): void {
  enter(
    'mcp',
    'serve agents to MCP clients over stdin and stdout; works on runs when no worker does',
    async () => (await import('./commands/mcp.js')).mcp,
  ).option(
    '--all-runs',
    'answer for every run of the namespace; default: for those that this server has started',
  );
  enter(
    'run <agent> <message...>',
    'start a run and follow it to its end',
    async () => (await import('./commands/run.js')).run,
  )
    .option('--id <id>', 'workflow id; default: the agent, the date and a random end')
    .option('--open', 'let it wait for more messages after each answer; see send and close')
    .option('--detach', 'start only, and print the id; another worker does the work')
    .option('--no-wait', 'leave when the run waits for a person (exit 3) or is blocked (exit 4)')
    .option('--max-steps <n>', 'model calls permitted in a turn', number)
    .option('--context <json>', 'JSON for your tools; the model never sees it', json)
    .option(
      '--arg <name=value>',
      "an argument of the agent's template, name:=json for what is no text; may be repeated",
      templateArguments,
    )
    .option(
      '--attach <file|url>',
      'an image or a PDF that goes along with the message, or the address of an image; may be repeated',
      repeated,
    )
    .option('--ui', 'on a terminal: stay up after the end until a key is pressed');
  enter(
    'attach <id>',
    'follow a run to its end, an open one to that of its turn; work on it when no worker does',
    async () => (await import('./commands/attach.js')).attach,
  )
    .option('--no-wait', 'leave when the run waits for a person (exit 3) or is blocked (exit 4)')
    .option('--ui', 'on a terminal: stay up after the end until a key is pressed');
  enter(
    'worker',
    'work on runs until interrupted',
    async () => (await import('./commands/worker.js')).worker,
  )
    .option('--max-cached <n>', 'idle runs kept in memory', number)
    .option('--deployment <name>', 'worker versioning: runs stay on the build on which they began')
    .option('--build-id <id>', 'name of this build; default: by the content of the workflow code')
    .option('--no-promote', 'let new runs begin on the build that is current, until you say so')
    .option('--live-port <n>', 'where others may read along; default: a port that is free', number)
    .option('--live-host <host>', 'address; any but 127.0.0.1 needs PERDURE_LIVE_TOKEN')
    .option('--no-live', 'let nobody read along');
  enter(
    'dev',
    'server and worker; reloads when your code changes',
    async () => (await import('./commands/dev.js')).dev,
  )
    .option('--live-port <n>', 'where others may read along; default: a port that is free', number)
    .option('--live-host <host>', 'address; any but 127.0.0.1 needs PERDURE_LIVE_TOKEN');
}

/** Commands that only read, and work while no worker is up. */
function registerReaders(enter: Enter): void {
  enter(
    'status <id>',
    'how a run stands',
    async () => (await import('./commands/status.js')).status,
  );
  enter(
    'live-token <id>',
    'make a token that lets its bearer read this run live, and no other',
    async () => (await import('./commands/live-token.js')).liveToken,
  ).option('--minutes <n>', 'for how long it is good', number, 60);
  enter('list', 'the runs there are', async () => (await import('./commands/list.js')).list)
    .option('--agent <name>', 'only runs of this agent')
    .option('--status <status>', 'only runs with this status')
    .option('--limit <n>', 'at most so many', number, 50);
  enter(
    'transcript <id>',
    'the messages of a run, through all its segments',
    async () => (await import('./commands/transcript.js')).transcript,
  )
    .option('--from <n>', 'first message, from 0', number)
    .option('--to <n>', 'first message not wanted any more', number)
    .option('--side', 'also the answers that were refused, and what the model was told of them')
    .option('--full', 'cut nothing; fetch large texts from the blob store');
  enter(
    'export <id>',
    'the history of a run as JSON, to keep or to replay',
    async () => (await import('./commands/export.js')).exportRun,
  )
    .option('--out <file>', 'write it there instead of to stdout')
    .option('--segment <n>', 'that segment, from 1; default: the newest', number)
    .option('--all', 'all segments that the server keeps, as FILE-1, FILE-2, …');
  enter(
    'replay [file...]',
    'check that this version would do again what histories say',
    async () => (await import('./commands/replay.js')).replay,
  )
    .option('--from-server [query]', 'histories of runs on the server; default: of all that live')
    .option('--limit <n>', 'at most so many runs of the server; default 1000', number);
  enter(
    'doctor',
    'which server, worker, model and versions are in use, and what is wrong',
    async () => (await import('./commands/doctor.js')).doctor,
  );
}

/** What a person decides about a run. */
function registerDecisions(enter: Enter): void {
  enter(
    'resolve <id> <call>',
    'settle a call of which nobody knows whether it happened, or whose tool has changed',
    async () => (await import('./commands/resolve.js')).resolve,
  )
    .addOption(
      new Option('--as <how>', 'what became of the call')
        .choices(['happened', 'retry', 'abandon', 'accept'])
        .makeOptionMandatory(),
    )
    .option('--result <json>', 'what the call returned, with --as happened', json)
    .option('--definition <hash>', 'the form of its tool that is meant, with --as accept');
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new InvalidArgumentError('Give a number.');
  return value;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidArgumentError(`It is no JSON: ${why}.`);
  }
}

function camelCase(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
