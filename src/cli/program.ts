import { Command as Program } from 'commander';
import { printable } from '../core/text/hidden.js';
import { ownVersion } from '../version.js';
import { repeated } from './repeated-options.js';

/** The command line without its commands: name, version, and the options that all of them take. */
export function createProgram(): Program {
  return new Program('perdure')
    .description('Durable AI agents on Temporal.')
    .version(ownVersion(), '-v, --version')
    .option('--config <file>', 'default: perdure.config.ts or .js here, else the agent `files`')
    .option('--no-config', 'load no configuration file: only the built-in agent `files`')
    .option('--write', 'let the agent `files` write documents and data; default: it only reads')
    .option('--allow-write <glob>', 'also what it refuses: code, settings of tools', repeated)
    .option('--allow-read <glob>', 'also what it refuses: secrets, such as .env files', repeated)
    .option('--address <host:port>', 'Temporal server; default: one that runs, else its own')
    .option('--namespace <name>', 'Temporal namespace')
    .option(
      '--task-queue <name>',
      "where workers listen; default: the configuration's, else perdure",
    )
    .option('--json', 'print one JSON document on stdout')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => process.stdout.write(printable(text)),
      writeErr: (text) => process.stderr.write(printable(text)),
    })
    .showHelpAfterError('(add --help for the usage)')
    .exitOverride();
}
