// The default theme, with drawings, and with tables that a phone shows in readable columns.
import DefaultTheme from 'vitepress/theme';
import Drawing from './Drawing.vue';
// oxlint-disable-next-line import/no-unassigned-import -- a bundler adds styles so
import './style.css';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Drawing', Drawing);
  },
};
