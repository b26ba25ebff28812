// Package bucketfile reads the bucket files of older routers, and the decisions
// that make complete buckets of them.
package bucketfile
