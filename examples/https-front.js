// The load of an ordinary day: users arrive one after the other, stay, and leave. Each asks, reads for a
// second, and asks again.
//
//   k6 run -e URL=https://example.com/ examples/https-front.js
//
// PACE=0.01 makes a hundredth of its twenty minutes; USERS says how many stay. CA trust: a certificate
// of your own needs INSECURE=1, or its authority in SSL_CERT_FILE.
import http from 'k6/http';
import { check, sleep } from 'k6';

const url = __ENV.URL || 'https://127.0.0.1/';
const users = Number(__ENV.USERS || 100);
const pace = Number(__ENV.PACE || 1);
const minutes = (count) => `${Math.ceil(count * 60 * pace * 1000)}ms`;

export const options = {
  insecureSkipTLSVerify: __ENV.INSECURE === '1',
  scenarios: {
    average: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [
        { duration: minutes(5), target: users },
        { duration: minutes(10), target: users },
        { duration: minutes(5), target: 0 },
      ],
      gracefulRampDown: '5s',
    },
  },
  thresholds: {
    http_req_failed: ['rate==0'],
    checks: ['rate==1'],
  },
};

export default function () {
  const answer = http.get(url);
  check(answer, {
    'it was served': (one) => one.status === 200,
    'by TLS': (one) => one.url.startsWith('https://') && one.tls_version.startsWith('tls1.'),
    'browsers are told to come by HTTPS': (one) => one.headers['Strict-Transport-Security'] !== undefined,
  });
  sleep(1);
}
