import { Command as Program } from 'commander';
import { ownVersion } from '../version.js';

/** The command line without its commands: name, version, and the options that all of them take. */
export function createProgram(): Program {
  return new Program('perdure')
    .description('Durable AI agents on Temporal.')
    .version(ownVersion(), '-v, --version')
    .option('--config <file>', 'default: perdure.config.ts or .js here, else the agent `files`')
    .option('--address <host:port>', 'Temporal server; default: one that runs, else its own')
    .option('--namespace <name>', 'Temporal namespace')
    .option('--task-queue <name>', 'where workers listen; default: perdure')
    .option('--json', 'print one JSON document on stdout')
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(add --help for the usage)')
    .exitOverride();
}
