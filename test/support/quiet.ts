import { installRuntime } from '../../src/runtime.js';

installRuntime('ERROR');
