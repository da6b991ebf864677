// An untrusted certificate for localhost and 127.0.0.1, valid for a hundred years. Its key is public and protects nothing. Made
// with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost -addext
// subjectAltName=DNS:localhost,IP:127.0.0.1

export const cert = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUBC4gbSbFJzYkaM1jFfuQGWSBIx0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTA2MTIyM1oYDzIxMjYxMDI4
MDYxMjIzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQbVS3A3m5fZhV9IkJLl8kpdeD+Ni1JzxijNl/2w75fVF3TApYPDNip
6a2+Q1tAujlEpXQBRs/Xta5IoaG8MdSmo28wbTAdBgNVHQ4EFgQUdwNsMwPuYcCE
Q8ZvP1LRJWxjZj8wHwYDVR0jBBgwFoAUdwNsMwPuYcCEQ8ZvP1LRJWxjZj8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAN2nPqjHAFJwJf+0WNylpUMgsnWPuLWmd67lLZcpKwvDAiBL
aNSlc14qjrZRDtKhLfEYVhXitRkAn4DAXO56Wpao8Q==
-----END CERTIFICATE-----
`;

export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgo9Ksdah55c9jQq2e
MH5s4P48lqDw39TK6AAH5aadhu6hRANCAAQbVS3A3m5fZhV9IkJLl8kpdeD+Ni1J
zxijNl/2w75fVF3TApYPDNip6a2+Q1tAujlEpXQBRs/Xta5IoaG8MdSm
-----END PRIVATE KEY-----
`;
