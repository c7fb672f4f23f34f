import { Command as Program, type Command as Entry } from 'commander';
import { printable } from '../core/text/text.js';
import { ownVersion } from '../storage/files.js';
import type { Command, Listed, ListedGroup } from './context.js';
import { withCommandHint, withOptionHint } from './input/option-hints.js';
import { withOptions } from './input/options.js';

/** Runs a command. `entry` holds the parsed options, `options` the command's own by name. */
type Runner = (command: Command<object>, entry: Entry, options: object) => Promise<void>;

const SCHEDULE_COMMANDS: ListedGroup = {
  summary: 'run agents on a cron expression or an interval',
  commands: {
    create: {
      summary: 'create a schedule',
      load: async () => (await import('./schedule/commands.js')).createSchedule,
    },
    list: {
      summary: 'list schedules',
      load: async () => (await import('./schedule/commands.js')).listSchedules,
    },
    show: {
      summary: 'show a schedule: what it sends, when, and how its firings went',
      load: async () => (await import('./schedule/show.js')).showSchedule,
    },
    pause: {
      summary: 'pause a schedule until it is resumed',
      load: async () => (await import('./schedule/commands.js')).pauseSchedule,
    },
    resume: {
      summary: 'resume a paused schedule',
      load: async () => (await import('./schedule/commands.js')).resumeSchedule,
    },
    trigger: {
      summary: 'fire a schedule now',
      load: async () => (await import('./schedule/trigger.js')).triggerSchedule,
    },
    update: {
      summary: 'change what a schedule does, and when',
      load: async () => (await import('./schedule/commands.js')).updateSchedule,
    },
    delete: {
      summary: 'delete a schedule',
      load: async () => (await import('./schedule/commands.js')).deleteSchedule,
    },
  },
};

const COMMANDS: Readonly<Record<string, Readonly<Record<string, Listed | ListedGroup>>>> = {
  'Start and follow:': {
    init: {
      summary: 'write a starter perdure.config.ts',
      load: async () => (await import('./commands/init.js')).init,
    },
    run: {
      summary: 'start a run and follow it until it ends',
      load: async () => (await import('./commands/run.js')).run,
    },
    chat: {
      summary: 'talk with an agent at the terminal, in one open run',
      load: async () => (await import('./commands/chat.js')).chat,
    },
    attach: {
      summary: 'follow a run, with a worker if none is running',
      load: async () => (await import('./commands/run.js')).attach,
    },
    fork: {
      summary: 'start a run with the messages of another run',
      load: async () => (await import('./commands/run.js')).fork,
    },
  },
  'Message and control:': {
    send: {
      summary: 'send a message to a run and follow its answer',
      load: async () => (await import('./commands/send.js')).send,
    },
    pause: {
      summary: 'pause a run after its calls in flight',
      load: async () => (await import('./commands/pause.js')).pause,
    },
    resume: {
      summary: 'continue a paused run, or retry a blocked run at once',
      load: async () => (await import('./commands/pause.js')).resume,
    },
    limits: {
      summary: 'show or change the limits of a run',
      load: async () => (await import('./commands/limits.js')).limits,
    },
    close: {
      summary: 'end an open run after the messages it already has',
      load: async () => (await import('./commands/pause.js')).close,
    },
    cancel: {
      summary: 'cancel a run or its current turn',
      load: async () => (await import('./commands/pause.js')).cancel,
    },
  },
  'Decide:': {
    inbox: {
      summary: 'list open requests, oldest first',
      load: async () => (await import('./commands/list.js')).inbox,
    },
    approve: {
      summary: 'let a run execute a call exactly as shown',
      load: async () => (await import('./commands/approve.js')).approve,
    },
    deny: {
      summary: 'refuse a call, and give the model the reason',
      load: async () => (await import('./commands/approve.js')).deny,
    },
    edit: {
      summary: 'let a run execute a call with other arguments',
      load: async () => (await import('./commands/approve.js')).edit,
    },
    answer: {
      summary: 'answer a question, or provide the result of a call',
      load: async () => (await import('./commands/approve.js')).answer,
    },
    resolve: {
      summary: 'resolve a tool call with an unknown outcome, or any request',
      load: async () => (await import('./commands/limits.js')).resolve,
    },
    revoke: {
      summary: 'end an approval that covers later calls',
      load: async () => (await import('./commands/approve.js')).revoke,
    },
    undo: {
      summary: 'undo a tool call',
      load: async () => (await import('./commands/undo.js')).undo,
    },
  },
  'Read (works without a worker):': {
    status: {
      summary: 'show the status of a run',
      load: async () => (await import('./commands/status.js')).status,
    },
    list: {
      summary: 'list the runs that the server has',
      load: async () => (await import('./commands/list.js')).list,
    },
    transcript: {
      summary: 'print the messages of a run, across all segments',
      load: async () => (await import('./commands/transcript.js')).transcript,
    },
    graph: {
      summary: 'print the graph of an agent or a run as Mermaid',
      load: async () => (await import('./commands/graph.js')).graph,
    },
    export: {
      summary: 'export the history of a run as JSON',
      load: async () => (await import('./commands/status.js')).exportRun,
    },
    audit: {
      summary: 'write who did what in runs as a log that is chained by hash, or check one',
      load: async () => (await import('./commands/audit.js')).audit,
    },
    record: {
      summary: 'record a run as a test case, to execute again with rerun',
      load: async () => (await import('./commands/record.js')).record,
    },
    rerun: {
      summary: 'execute recordings again with the current agents, and show the first difference',
      load: async () => (await import('./commands/rerun.js')).rerun,
    },
    eval: {
      summary: 'run recordings with another model, and compare, score, and gate it',
      load: async () => (await import('./commands/eval.js')).evaluation,
    },
    replay: {
      summary: 'check that this version reproduces the decisions in histories',
      load: async () => (await import('./commands/replay.js')).replay,
    },
    'live-token': {
      summary: 'create a token that can read one run live',
      load: async () => (await import('./commands/status.js')).liveToken,
    },
  },
  'Operate:': {
    schedule: SCHEDULE_COMMANDS,
    dev: {
      summary: 'run a server and a worker that reloads on changes',
      load: async () => (await import('./commands/dev.js')).dev,
    },
    worker: {
      summary: 'run a worker until interrupted',
      load: async () => (await import('./commands/dev.js')).worker,
    },
    serve: {
      summary: 'serve the console and the HTTP API, with a worker if none is running',
      load: async () => (await import('./commands/serve.js')).serve,
    },
    mcp: {
      summary: 'serve agents to MCP clients over stdin and stdout',
      load: async () => (await import('./commands/mcp.js')).mcp,
      commands: {
        accept: {
          summary: 'show how tools of MCP servers have changed, and accept the changes',
          load: async () => (await import('./commands/mcp.js')).mcpAccept,
        },
      },
    },
    codec: {
      summary: "decrypt payloads for Temporal's UI",
      load: async () => (await import('./commands/codec.js')).codec,
    },
    erase: {
      summary: 'remove runs that have ended, with everything that is stored of them',
      load: async () => (await import('./commands/erase.js')).erase,
    },
    budgets: {
      summary: 'show what tenants and tags have spent of their budgets today',
      load: async () => (await import('./commands/budgets.js')).budgets,
    },
    costs: {
      summary: 'add up what runs have cost, per agent, tenant, or tag',
      load: async () => (await import('./commands/costs.js')).costs,
    },
    bench: {
      summary: 'measure the server, and say which of its settings to change',
      load: async () => (await import('./commands/bench.js')).bench,
    },
    doctor: {
      summary: 'check server, workers, models, and versions',
      load: async () => (await import('./commands/doctor.js')).doctor,
    },
  },
};

/** Creates the command line: the global options and the list of commands. */
export function createProgram(runner: Runner): Program {
  const program = new Program('perdure')
    .description('Durable AI agents on Temporal.')
    .version(ownVersion(), '-v, --version');
  withOptions(
    program,
    'config',
    'noConfig',
    'write',
    'allowWrite',
    'allowRead',
    'address',
    'namespace',
    'taskQueue',
    'json',
  )
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => process.stdout.write(printable(text)),
      writeErr: (text) => process.stderr.write(printable(text)),
    })
    .helpCommand(false)
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride();
  for (const [group, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(group);
    addCommands(program, commands, runner);
  }
  hintAtCommands(program);
  return program;
}

/** Lets the errors of the program or of a group name the command that an unknown one means. */
function hintAtCommands(entry: Entry): void {
  const fail = entry.error.bind(entry);
  entry.error = (message, options) => fail(withCommandHint(message, entry), options);
}

/** Adds commands whose modules are loaded when they are used. */
function addCommands(
  parent: Entry,
  commands: Readonly<Record<string, Listed | ListedGroup>>,
  runner: Runner,
): void {
  for (const [name, listed] of Object.entries(commands)) {
    const entry = parent.command(name).description(listed.summary);
    if (listed.commands) {
      addCommands(entry.helpCommand(false), listed.commands, runner);
      hintAtCommands(entry);
    }
    if ('load' in listed)
      parent.hook('preSubcommand', async (_, used) => {
        if (used === entry) registerCommand(entry, await listed.load(), runner);
      });
  }
}

/** Adds the arguments, the options, and the action of a command to its entry. */
function registerCommand(entry: Entry, command: Command<never>, runner: Runner): void {
  command.declare?.(entry);
  const names = [...pathTo(entry), entry.usage()].join(' ');
  entry.showHelpAfterError(`(usage: ${names}; --help explains it)`);
  const fail = entry.error.bind(entry);
  entry.error = (message, options) => fail(withOptionHint(message, entry), options);
  entry.action(async () => {
    const given = entry.registeredArguments.map((argument) => toCamelCase(argument.name()));
    const values = given.map((name, index) => [name, entry.processedArgs[index]]);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `declare` names what `run` reads
    const declared = command as Command<object>;
    await runner(declared, entry, { ...Object.fromEntries(values), ...entry.opts() });
  });
}

/** Returns the words of a command, from the program's name on. */
function pathTo(entry: Entry): readonly string[] {
  return [...(entry.parent === null ? [] : pathTo(entry.parent)), entry.name()];
}

function toCamelCase(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
