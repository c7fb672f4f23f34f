import { readFileSync } from 'node:fs';
import { Command as Program } from 'commander';

/** The command line without its commands: name, version, and the options that all of them take. */
export function createProgram(): Program {
  return new Program('perdure')
    .description('Durable AI agents on Temporal.')
    .version(version(), '-v, --version')
    .option('--config <file>', 'default: perdure.config.ts or .js here, else the agent `files`')
    .option('--address <host:port>', 'Temporal server; default: one that runs, else its own')
    .option('--namespace <name>', 'Temporal namespace')
    .option('--task-queue <name>', 'where workers listen; default: perdure')
    .option('--json', 'print one JSON document on stdout')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(add --help for the usage)')
    .exitOverride();
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url);
  const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return typeof found === 'object' && found !== null && 'version' in found
    ? String(found.version)
    : 'unknown';
}
