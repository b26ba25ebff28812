// Package events compares the prefix index with the engines' own Python code:
// run.sh fetches the packages, hashes prompts with their functions and publishes
// events with their classes over libzmq. The tests are skipped unless run.sh
// started them. There is nothing to use concurrently.
package events
