import { defineConfig } from 'perdure';
import { jokes } from './evaluator-loop.js';
import { forecaster } from './tool-loop.js';

export default defineConfig({ agents: [jokes, forecaster] });
